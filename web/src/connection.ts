// The freshness of each run's state, and the one stream that brings the chosen runs. A message is
// applied to the state of its run. When the server is gone, the page says so at once, and tries
// again until it is back.

import type { Update } from "./protocol.ts";
import { RunState } from "./run_state.ts";

export type Link =
  | { kind: "connecting"; since: number }
  | { kind: "live"; back?: { seconds: number; steps: number; at: number } }
  | { kind: "silent"; since: number }
  | { kind: "lost"; since: number };

const RETRY_MS = 2000;
// A live run tells of its nodes about once a second; a connection that says nothing for so long is
// taken for dead, as no operating system would for minutes.
const SILENT_MS = 15000;
const REOPEN_MS = 60000;

export class Connection {
  link: Link = { kind: "connecting", since: Date.now() };

  private heard = Date.now();
  private stepsBefore = 0;
  private lostSince: number | undefined;

  constructor(readonly id: number, readonly state: RunState) {}

  take(text: string): void {
    let update: Update;
    try {
      update = JSON.parse(text) as Update;
    } catch {
      return;  // half a message of a server that died
    }
    const before = this.state.progress?.steps ?? 0;
    this.state.apply(update);
    this.heard = Date.now();
    if (this.lostSince !== undefined) {
      const steps = Math.max(0, (this.state.progress?.steps ?? before) - this.stepsBefore);
      const seconds = (Date.now() - this.lostSince) / 1000;
      this.lostSince = undefined;
      this.link = { kind: "live", back: { seconds, steps, at: Date.now() } };
    } else if (this.link.kind !== "live") {
      this.link = { kind: "live" };
    }
  }

  // The server does not answer.
  gone(): void {
    if (this.lostSince !== undefined) return;
    this.lostSince = Date.now();
    this.stepsBefore = this.state.progress?.steps ?? 0;
    this.link = { kind: "lost", since: this.lostSince };
  }

  // Called now and then: links grow old.
  look(): void {
    if (this.link.kind === "live" && this.link.back && Date.now() - this.link.back.at > 20000) {
      this.link = { kind: "live" };
    }
    if (this.link.kind === "live" && this.silence > SILENT_MS) {
      this.link = { kind: "silent", since: this.heard };
    }
  }

  // Milliseconds for which a live run has been silent although it should not be; 0 for any other run.
  get silence(): number {
    return this.state.finished || this.lostSince !== undefined ? 0 : Date.now() - this.heard;
  }

  // The stream begins anew.
  wait(): void {
    this.heard = Date.now();
  }
}

// One connection for all runs: a browser keeps six to a host, whatever the number of its tabs.
export class Feed {
  private followed: readonly Connection[] = [];
  private source: EventSource | undefined;
  private retry: number | undefined;
  private opened = Date.now();

  // `changed` is called after each change of a state or of a link.
  constructor(private readonly changed: () => void) {
    window.setInterval(() => this.look(), 1000);
    window.addEventListener("online", () => this.open());
    window.addEventListener("offline", () => this.gone());
  }

  // From now on these and no others.
  follow(connections: readonly Connection[]): void {
    const before = this.followed;
    this.followed = connections;
    if (connections.length !== before.length || connections.some((one, i) => one !== before[i])) this.open();
  }

  private open(): void {
    window.clearTimeout(this.retry);
    this.source?.close();
    this.source = undefined;
    if (this.followed.length === 0) return;
    this.opened = Date.now();
    const source = new EventSource(`/api/runs/${this.followed.map((one) => one.id).join(",")}/stream`);
    this.source = source;
    for (const one of this.followed) {
      one.wait();
      const which = this.followed.length > 1 ? ` ${one.id}` : "";
      const take = (event: MessageEvent<string>) => {
        one.take(event.data);
        this.changed();
      };
      source.addEventListener(`history${which}`, take);
      source.addEventListener(`update${which}`, take);
    }
    source.onerror = () => {
      if (this.source !== source) return;
      this.gone();
      // After a refusal the browser does not try again by itself. If only the connection was lost
      // it does, and sends Last-Event-ID.
      if (source.readyState === EventSource.CLOSED) {
        this.retry = window.setTimeout(() => this.open(), RETRY_MS);
      }
    };
  }

  private look(): void {
    for (const one of this.followed) one.look();
    // Anew, all tell their whole history again: not where one of them alone is stuck.
    const live = this.followed.filter((one) => !one.state.finished);
    const silent = live.length > 0 && live.every((one) => one.silence > REOPEN_MS);
    if (silent && Date.now() - this.opened > REOPEN_MS) this.open();
    this.changed();
  }

  private gone(): void {
    for (const one of this.followed) one.gone();
    this.changed();
  }
}
