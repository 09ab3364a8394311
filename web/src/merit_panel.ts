// The figure of merit, validation by validation.

import { Chart } from "./chart.ts";
import { make } from "./elements.ts";
import { SERIES_COLOURS } from "./palette.ts";
import { Fingerprint, type Panel, section, type ShownRun } from "./panel.ts";
import { validationCurve } from "./validation_curve.ts";
import { meritOf } from "./validations.ts";
import { Zoom } from "./zoom.ts";

export class MeritPanel implements Panel {
  readonly element: HTMLElement;
  private chart = new Chart(new Zoom());
  private empty = make("p", { class: "empty", hidden: true }, "No validation has been made yet.");
  private seen = new Fingerprint();

  constructor() {
    this.element = section("merit", "Figure of merit, less is better", undefined, this.empty,
      make("div", { class: "charts" }, this.chart.element));
  }

  show(runs: readonly ShownRun[]): void {
    const key = runs.map((r) => `${r.listed.id}${r.label}:${r.state.changes.validations}:${r.state.changes.run}`);
    if (!this.seen.changed(...key)) return;
    const any = runs.some((run) => run.state.validations.length > 0);
    this.empty.hidden = any;
    this.chart.element.hidden = !any;
    if (!any) return;
    this.chart.show({
      title: "Figure of merit", marks: [], log: true, axis: "epoch",
      curves: runs.map((run, i) =>
        validationCurve(run, runs.length > 1 ? run.label : "generated", "", i % SERIES_COLOURS, i, meritOf)),
    });
  }

  repaint(): void {
    this.chart.repaint();
  }
}
