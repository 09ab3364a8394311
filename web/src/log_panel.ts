// The newest lines of the log. It follows them unless somebody has scrolled up to read.

import { button, choice, make, setText } from "./elements.ts";
import { timeOfDay } from "./format.ts";
import { Fingerprint, type Panel, section, type ShownRun } from "./panel.ts";
import type { LogLine } from "./protocol.ts";

const LEVELS = ["info", "warning", "error"];
const SHOWN = 500;

export class LogPanel implements Panel {
  readonly element: HTMLElement;
  private level = 0;
  private follows = true;
  private list = make("ol", {});
  private box: HTMLElement;
  private follow: HTMLButtonElement;
  private note = make("span", { class: "note" });
  private seen = new Fingerprint();
  private last: readonly ShownRun[] = [];

  constructor() {
    const level = choice("Level", [["0", "all"], ["1", "warnings and errors"], ["2", "errors"]], "0",
      (value) => {
        this.level = Number(value);
        this.seen.forget();
        this.show(this.last);
      });
    this.follow = button("Follow", () => this.toEnd(), { hidden: true });
    this.box = make("div", { class: "scroll log-lines", tabindex: 0, role: "region",
      "aria-label": "Log lines", onscroll: () => this.scrolled() }, this.list);
    this.element = section("log", "Log", make("div", { class: "tools" }, level.element, this.follow,
      this.note), this.box);
  }

  show(runs: readonly ShownRun[]): void {
    this.last = runs;
    if (!this.seen.changed(...runs.map((r) => `${r.listed.id}${r.label}:${r.state.changes.log}`))) return;
    const several = runs.length > 1;
    const lines = runs.flatMap((run) => run.state.log.map((line) => ({ line, run })))
      .filter(({ line }) => severity(line) >= this.level);
    if (several) lines.sort((a, b) => a.line.time - b.line.time);
    const shown = lines.slice(-SHOWN);
    setText(this.note, shown.length === 0 ? "No lines" : "");
    // Lines that are there already stay, so that a selection in them does.
    const keys = shown.map(({ line, run }) => `${run.listed.id}|${line.time}|${line.level}|${line.text}`);
    let first = this.list.firstElementChild as HTMLElement | null;
    while (first && first.dataset["key"] !== keys[0]) {
      const next = first.nextElementSibling as HTMLElement | null;
      first.remove();
      first = next;
    }
    let at = first;
    keys.forEach((key, i) => {
      if (at && at.dataset["key"] === key) {
        at = at.nextElementSibling as HTMLElement | null;
        return;
      }
      while (at) {
        const next = at.nextElementSibling as HTMLElement | null;
        at.remove();
        at = next;
      }
      const { line, run } = shown[i]!;
      const item = make("li", { class: line.level }, make("time", {}, timeOfDay(line.time)),
        make("span", { class: "level" }, line.level), make("span", { class: "text" },
          several ? `${run.label}: ${line.text}` : line.text));
      item.dataset["key"] = key;
      this.list.append(item);
    });
    if (this.follows) this.box.scrollTop = this.box.scrollHeight;
  }

  private scrolled(): void {
    this.follows = this.box.scrollTop + this.box.clientHeight >= this.box.scrollHeight - 24;
    this.follow.hidden = this.follows;
  }

  private toEnd(): void {
    this.follows = true;
    this.box.scrollTop = this.box.scrollHeight;
    this.box.focus();
  }
}

function severity(line: LogLine): number {
  return Math.max(0, LEVELS.indexOf(line.level));
}
