// Who a run is, how far it has come, how fast it goes, and whether what is seen is of now.

import type { Link } from "./connection.ts";
import { make, setAttribute, setText } from "./elements.ts";
import { count, dateAndTime, duration, figure, timeOfDay } from "./format.ts";
import type { ShownRun } from "./panel.ts";

const STATES: Record<string, string> = {
  starting: "starting", training: "training", ended: "finished", failed: "failed",
  stopped: "stopped",
};

export class RunHeader {
  readonly element: HTMLElement;
  private name = make("h2", {});
  private model = make("span", { class: "model" });
  private state = make("span", { class: "state" });
  private link = make("span", { class: "link" });
  private error = make("p", { class: "error", hidden: true });
  private bar = make("div", { class: "bar", role: "progressbar", "aria-valuemin": 0,
    "aria-valuemax": 100 }, make("div", {}));
  private figures = make("dl", {});
  private values = new Map<string, { box: HTMLElement; value: HTMLElement }>();

  constructor() {
    this.element = make("article", { class: "run" },
      make("div", { class: "title" }, this.name, this.model, this.state, this.link),
      this.bar, this.error, this.figures);
  }

  show(run: ShownRun): void {
    const { run: facts, progress } = run.state;
    setText(this.name, run.label);
    setText(this.model, facts?.model ?? "");
    const state = progress?.state ?? "unknown";
    setText(this.state, STATES[state] ?? state);
    setAttribute(this.element, "data-state", state);
    setText(this.link, linkText(run.connection.link, run));
    setAttribute(this.link, "data-link", linkKind(run));
    this.error.hidden = !progress?.error;
    setText(this.error, progress?.error ?? "");
    if (!progress) return;
    const all = facts?.iterations ?? 0;
    const done = all > 0 ? Math.min(100, (100 * progress.iterations) / all) : 0;
    (this.bar.firstElementChild as HTMLElement).style.width = `${done}%`;
    setAttribute(this.bar, "aria-valuenow", done.toFixed(0));
    setAttribute(this.bar, "aria-label", `Progress of ${run.label}`);
    const per = facts?.iterations_per_epoch ?? 0;
    const epochs = per > 0 && all > 0 ? Math.ceil(all / per) : 0;
    this.set("Epoch", epochs > 0
      ? `${Math.min(progress.epochs + Number(!run.state.finished), epochs)} of ${epochs}`
      : count(progress.epochs));
    this.set("Iteration", all > 0 ? `${count(progress.iterations)} of ${count(all)}`
      : count(progress.iterations));
    this.set("Events/s", figure(progress.events_per_second));
    if (run.state.finished) {
      this.set("Time left", undefined);
      this.set("Ended", progress.newest > 0 ? dateAndTime(progress.newest) : "–");
    } else {
      this.set("Time left", duration(progress.seconds_left));
      this.set("Ended", undefined);
    }
    this.set("Taken", duration(progress.newest - progress.began));
    this.set("Node hours", figure(progress.node_hours));
    this.set("Core hours", figure(progress.core_hours));
    this.set("Cost", facts && facts.price_per_node_hour > 0 ? figure(progress.cost, 4) : undefined);
    this.set("Metrics dropped", count(progress.dropped), progress.dropped > 0);
  }

  private set(name: string, text: string | undefined, warn = false): void {
    let entry = this.values.get(name);
    if (!entry) {
      const value = make("dd", {});
      entry = { box: make("div", {}, make("dt", {}, name), value), value };
      this.values.set(name, entry);
      this.figures.append(entry.box);
    }
    entry.box.hidden = text === undefined;
    entry.box.classList.toggle("warn", warn);
    setText(entry.value, text ?? "");
  }
}

// "saved": of a run that has ended there is no news to wait for.
export function linkKind(run: ShownRun): string {
  const { link } = run.connection;
  return link.kind === "live" && run.state.finished ? "saved" : link.kind;
}

export function linkText(link: Link, run: ShownRun): string {
  switch (link.kind) {
    case "connecting": return "connecting";
    case "silent": return `no news since ${timeOfDay(link.since / 1000)}`;
    case "lost": return `reconnecting since ${timeOfDay(link.since / 1000)}`;
    case "live":
      if (link.back) {
        return `back after ${duration(Math.max(1, link.back.seconds))}, ` +
          `${count(link.back.steps)} ${link.back.steps === 1 ? "point" : "points"} caught up`;
      }
      return run.state.finished ? "complete" : "live";
  }
}
