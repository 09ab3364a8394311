// The stream of one run: what comes is applied to its state; when the server is gone that is told
// at once, and it is tried again until it is back.

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

  private source: EventSource | undefined;
  private retry: number | undefined;
  private watch: number;
  private heard = Date.now();
  private opened = Date.now();
  private stepsBefore = 0;
  private lostSince: number | undefined;

  // `changed` is called after each change of the state or of the link.
  constructor(
    readonly id: number,
    readonly state: RunState,
    private readonly changed: () => void,
  ) {
    this.open();
    this.watch = window.setInterval(() => this.look(), 1000);
    window.addEventListener("online", this.again);
    window.addEventListener("offline", this.gone);
  }

  close(): void {
    this.source?.close();
    window.clearTimeout(this.retry);
    window.clearInterval(this.watch);
    window.removeEventListener("online", this.again);
    window.removeEventListener("offline", this.gone);
  }

  private open(): void {
    window.clearTimeout(this.retry);
    this.source?.close();
    this.opened = Date.now();
    const source = new EventSource(`/api/runs/${this.id}/stream`);
    this.source = source;
    const take = (event: MessageEvent<string>) => this.take(event.data);
    source.addEventListener("history", take);
    source.addEventListener("update", take);
    source.onopen = () => {
      this.heard = Date.now();
    };
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

  private take(text: string): void {
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
    this.changed();
  }

  private look(): void {
    if (this.link.kind === "live" && this.link.back && Date.now() - this.link.back.at > 20000) {
      this.link = { kind: "live" };
      this.changed();
    }
    if (this.state.finished || this.lostSince !== undefined) return;
    const silent = Date.now() - this.heard;
    if (silent > SILENT_MS && this.link.kind === "live") {
      this.link = { kind: "silent", since: this.heard };
      this.changed();
    }
    if (silent > REOPEN_MS && Date.now() - this.opened > REOPEN_MS) this.open();
  }

  private readonly gone = (): void => {
    if (this.lostSince !== undefined) return;
    this.lostSince = Date.now();
    this.stepsBefore = this.state.progress?.steps ?? 0;
    this.link = { kind: "lost", since: this.lostSince };
    this.changed();
  };

  private readonly again = (): void => this.open();
}
