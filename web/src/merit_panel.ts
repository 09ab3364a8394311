// The figure of merit, validation by validation, and the figure by which the best state is chosen
// where that is another one.

import { Chart } from "./chart.ts";
import { make, setText } from "./elements.ts";
import { curveStyle } from "./palette.ts";
import { Fingerprint, type Panel, section, type ShownRun } from "./panel.ts";
import type { Validation } from "./protocol.ts";
import { validationCurve } from "./validation_curve.ts";
import { chosenOf, meritOf, unlikeOf } from "./validations.ts";
import { Zoom } from "./zoom.ts";

export class MeritPanel implements Panel {
  readonly element: HTMLElement;
  private chart = new Chart(new Zoom());
  private chosen = new Chart(new Zoom());
  private empty = make("p", { class: "empty", hidden: true }, "No validation has been made yet.");
  private warning = make("p", { class: "note warning", hidden: true });
  private seen = new Fingerprint();

  constructor() {
    this.element = section("merit", "Figure of merit, less is better", undefined, this.empty,
      this.warning, make("div", { class: "charts" }, this.chart.element, this.chosen.element));
  }

  show(runs: readonly ShownRun[]): void {
    const key = runs.map((r) => `${r.listed.id}${r.label}:${r.state.changes.validations}:${r.state.changes.run}`);
    if (!this.seen.changed(...key)) return;
    const any = runs.some((run) => run.state.validations.length > 0);
    this.empty.hidden = any;
    const chosen = runs.map((run) => chosenOf(run.state.validations[run.state.validations.length - 1]))
      .find((one) => one.figure !== "merit");
    this.chosen.element.hidden = !any || chosen === undefined;
    // A classifier or a loss that judges finds no merit.
    const has_merit = chosen === undefined ||
      runs.some((run) => run.state.validations.some((one) => meritOf(one) !== undefined));
    this.chart.element.hidden = !any || !has_merit;
    const warnings = runs.flatMap((run) => warningOf(run, runs.length > 1));
    this.warning.hidden = warnings.length === 0;
    setText(this.warning, warnings.join(" "));
    if (!any) return;
    if (has_merit) {
      this.chart.show({
        title: "Figure of merit", marks: [], log: true, axis: "epoch",
        curves: runs.map((run, i) =>
          validationCurve(run, runs.length > 1 ? run.label : "generated", "", curveStyle(i), meritOf)),
      });
    }
    if (chosen === undefined) return;
    const distance = (one: Validation) => {
      const own = chosenOf(one);
      return own.figure === chosen.figure ? own.distance ?? undefined : undefined;
    };
    this.chosen.show({
      title: `Distance of the ${chosen.title} from its ideal`, marks: [],
      // A classifier may be right of all, which has no place on a logarithmic axis.
      log: !/\/(accuracy|area)$/.test(chosen.figure), axis: "epoch",
      curves: runs.map((run, i) => validationCurve(run, runs.length > 1 ? run.label : "generated",
        chosen.unit, curveStyle(i), distance)),
    });
  }

  repaint(): void {
    this.chart.repaint();
    this.chosen.repaint();
  }
}

function warningOf({ label, state }: ShownRun, several: boolean): string[] {
  const all = state.validations.length;
  const unlike = state.validations.filter((one) => unlikeOf(one).length > 0).length;
  return unlike === 0 ? [] : [`! ${several ? `${label}: ` : ""}${unlike} of ${all} validations found ` +
    "nothing like the data; their merit means nothing."];
}
