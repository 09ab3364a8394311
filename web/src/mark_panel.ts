// The events of the run as text: the meaning of the lines and shapes across the curves.

import { make, toggle } from "./elements.ts";
import { count, timeOfDay } from "./format.ts";
import { Fingerprint, type Panel, section, type ShownRun } from "./panel.ts";
import type { Mark } from "./protocol.ts";

const NEWEST = 200;

export class MarkPanel implements Panel {
  readonly element: HTMLElement;
  private list = make("ol", { class: "marks" });
  private seen = new Fingerprint();
  private membersOnly = false;
  private last: readonly ShownRun[] = [];

  constructor() {
    const members = toggle("Members only", false, (on) => {
      this.membersOnly = on;
      this.seen.forget();
      this.show(this.last);
    });
    this.element = section("happened", "What happened",
      make("div", { class: "tools" }, members.element),
      make("div", { class: "scroll tall", tabindex: 0, role: "region",
        "aria-label": "List of what happened" }, this.list));
  }

  show(runs: readonly ShownRun[]): void {
    this.last = runs;
    if (!this.seen.changed(...runs.map((r) => `${r.listed.id}${r.label}:${r.state.changes.marks}`))) return;
    const marks: { mark: Mark; run: ShownRun }[] = runs.flatMap((run) =>
      run.state.marks.filter((mark) => mark.text !== "" &&
        (!this.membersOnly || mark.kind === "node")).map((mark) => ({ mark, run })));
    marks.sort((a, b) => b.mark.time - a.mark.time || b.mark.step - a.mark.step);
    const items = marks.slice(0, NEWEST).map(({ mark, run }) => make("li", { class: `mark of-${mark.kind}` },
      make("span", { class: "where" }, `step ${count(mark.step)}`),
      make("span", { class: "shape", "aria-hidden": true }),
      make("span", { class: "what" },
        runs.length > 1 ? `${run.label}: ` : "",
        mark.text),
      make("time", {}, mark.time > 0 ? timeOfDay(mark.time) : "")));
    if (items.length === 0) items.push(make("li", { class: "empty" }, "Nothing yet"));
    this.list.replaceChildren(...items);
  }
}
