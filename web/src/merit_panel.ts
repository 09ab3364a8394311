// The figure of merit, validation by validation.

import { Chart } from "./chart.ts";
import { make, setText } from "./elements.ts";
import { curveStyle } from "./palette.ts";
import { Fingerprint, type Panel, section, type ShownRun } from "./panel.ts";
import { validationCurve } from "./validation_curve.ts";
import { meritOf, unlikeOf } from "./validations.ts";
import { Zoom } from "./zoom.ts";

export class MeritPanel implements Panel {
  readonly element: HTMLElement;
  private chart = new Chart(new Zoom());
  private empty = make("p", { class: "empty", hidden: true }, "No validation has been made yet.");
  private warning = make("p", { class: "note warning", hidden: true });
  private seen = new Fingerprint();

  constructor() {
    this.element = section("merit", "Figure of merit, less is better", undefined, this.empty,
      this.warning, make("div", { class: "charts" }, this.chart.element));
  }

  show(runs: readonly ShownRun[]): void {
    const key = runs.map((r) => `${r.listed.id}${r.label}:${r.state.changes.validations}:${r.state.changes.run}`);
    if (!this.seen.changed(...key)) return;
    const any = runs.some((run) => run.state.validations.length > 0);
    this.empty.hidden = any;
    this.chart.element.hidden = !any;
    const warnings = runs.flatMap((run) => warningOf(run, runs.length > 1));
    this.warning.hidden = warnings.length === 0;
    setText(this.warning, warnings.join(" "));
    if (!any) return;
    this.chart.show({
      title: "Figure of merit", marks: [], log: true, axis: "epoch",
      curves: runs.map((run, i) =>
        validationCurve(run, runs.length > 1 ? run.label : "generated", "", curveStyle(i), meritOf)),
    });
  }

  repaint(): void {
    this.chart.repaint();
  }
}

function warningOf({ label, state }: ShownRun, several: boolean): string[] {
  const all = state.validations.length;
  const unlike = state.validations.filter((one) => unlikeOf(one).length > 0).length;
  return unlike === 0 ? [] : [`! ${several ? `${label}: ` : ""}${unlike} of ${all} validations found ` +
    "nothing like the data; their merit means nothing."];
}
