// The name of a run, its progress, the quality of its showers, and the freshness of the page.

import type { Link } from "./connection.ts";
import { make, setAttribute, setText } from "./elements.ts";
import { Figures } from "./figures.ts";
import { count, dateAndTime, duration, figure, percent, timeOfDay } from "./format.ts";
import type { ShownRun } from "./panel.ts";
import type { ChosenFigure } from "./protocol.ts";
import { bestChosen, comparisonOf, ERRORS, meritOf, unlikeOf } from "./validations.ts";

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
  private unlike = make("p", { class: "unlike", hidden: true });
  private bar = make("div", { class: "bar", role: "progressbar", "aria-valuemin": 0,
    "aria-valuemax": 100 }, make("div", {}));
  private progress = new Figures("Progress");
  private quality = new Figures("Generated showers against the data");

  constructor() {
    this.element = make("article", { class: "run" },
      make("div", { class: "title" }, this.name, this.model, this.state, this.link),
      this.bar, this.error, make("div", { class: "glance" }, this.quality.element, this.progress.element),
      this.unlike);
  }

  // `several`: it is one of a few, and so a line.
  show(run: ShownRun, several: boolean): void {
    this.element.classList.toggle("one-of-several", several);
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
    this.showProgress(run);
    this.showQuality(run, several);
  }

  private showProgress({ state }: ShownRun): void {
    const { run: facts, progress } = state;
    if (!progress) return;
    const all = facts?.iterations ?? 0;
    this.progress.set("Epoch", progress.all_epochs > 0
      ? `${count(progress.epoch)} of ${count(progress.all_epochs)}` : progress.epoch > 0 ? count(progress.epoch) : undefined);
    this.progress.set("Iteration", all > 0 ? `${count(progress.iterations)} of ${count(all)}`
      : count(progress.iterations));
    this.progress.set("Time left", state.finished ? undefined : duration(progress.seconds_left));
    this.progress.set("Ended", !state.finished ? undefined
      : progress.newest > 0 ? dateAndTime(progress.newest) : "–");
  }

  private showQuality({ state }: ShownRun, several: boolean): void {
    const last = state.validations[state.validations.length - 1];
    const unlike = unlikeOf(last);
    this.quality.set("Figure of merit", last
      ? `${figure(meritOf(last))}${unlike.length > 0 ? " !" : ""}` : "none yet", unlike.length > 0);
    this.unlike.hidden = unlike.length === 0;
    setText(this.unlike, `! The showers are nothing like the data (${unlike.join(", ")}), so that ` +
      "their figure of merit means nothing.");
    this.quality.set("Best so far", last && !several
      ? chosenText(bestChosen(state.validations)) : undefined);
    for (const [name, label] of ERRORS) {
      const error = comparisonOf(last)?.[name] ?? undefined;
      this.quality.set(label[0]!.toUpperCase() + label.slice(1),
        error === undefined || several ? undefined : `${percent(error)} off`);
    }
  }
}

// A figure other than that of merit, which stands beside it, has its name behind it.
function chosenText(chosen: ChosenFigure | undefined): string {
  const value = figure(chosen?.value ?? undefined);
  if (!chosen || chosen.figure === "merit") return value;
  return `${value}${chosen.unit ? ` ${chosen.unit}` : ""} (${chosen.title})`;
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
