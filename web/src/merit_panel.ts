// How the generated showers compare with the data, epoch by epoch, in figures.

import { Chart } from "./chart.ts";
import type { Curve } from "./curve.ts";
import { make } from "./elements.ts";
import { count, figure, percent } from "./format.ts";
import { Fingerprint, type Panel, section, type ShownRun } from "./panel.ts";
import type { Comparison, ValidationRow } from "./protocol.ts";
import { Zoom } from "./zoom.ts";

const ERRORS: [keyof Omit<Comparison, "merit" | "unlike">, string][] = [
  ["sampling_fraction_error", "response"], ["longitudinal_error", "longitudinal"],
  ["transverse_error", "transverse"], ["hits_error", "hits"],
  ["sampling_fraction_width_error", "width of the response"],
];

export class MeritPanel implements Panel {
  readonly element: HTMLElement;
  private zoom = new Zoom();
  private merit = new Chart(this.zoom);
  private errors = new Chart(this.zoom);
  private tables = make("div", { class: "scroll", tabindex: 0, role: "region",
    "aria-label": "Last validation" });
  private empty = make("p", { class: "empty" }, "No validation has been made yet.");
  private body: HTMLElement;
  private seen = new Fingerprint();

  constructor() {
    this.body = make("div", {}, make("div", { class: "charts" }, this.merit.element,
      this.errors.element), this.tables);
    this.element = section("merit", "Figure of merit", this.empty, this.body);
  }

  show(runs: readonly ShownRun[]): void {
    const key = runs.map((r) => `${r.listed.id}${r.label}:${r.state.changes.validations}:${r.state.changes.run}`);
    if (!this.seen.changed(...key)) return;
    const several = runs.length > 1;
    const any = runs.some((run) => run.state.validations.length > 0);
    this.empty.hidden = any;
    this.body.hidden = !any;
    if (!any) return;
    this.merit.show({
      title: "Figure of merit, less is better", marks: [], log: true, axis: "epoch",
      curves: runs.map((run, dash) => curve(run, several ? run.label : "generated", "", dash, dash,
        (c) => c.merit?.total)),
    });
    this.errors.show({
      title: "Difference from the data", marks: [], log: true, axis: "epoch",
      curves: runs.flatMap((run, dash) => ERRORS.map(([name, label], colour) =>
        curve(run, several ? `${run.label} ${label}` : label, "%", colour, dash,
          (c) => percentage(c[name])))),
    });
    this.tables.replaceChildren(...runs.filter((run) => run.state.validations.length > 0)
      .map((run) => table(run, several)));
  }

  repaint(): void {
    this.merit.repaint();
    this.errors.repaint();
  }
}

function curve(run: ShownRun, label: string, unit: string, colour: number, dash: number,
               value: (comparison: Comparison) => number | null | undefined): Curve {
  const facts = run.state.run;
  const steps = Math.max(1, (facts?.iterations_per_epoch ?? 1) * (facts?.schedule.length || 1));
  const result: Curve = { label, unit, colour, dash, x: [], y: [] };
  for (const one of run.state.validations) {
    const comparison = generated(one.rows)?.comparison;
    const found = comparison && value(comparison);
    if (found === null || found === undefined || !Number.isFinite(found)) continue;
    const x = one.step / steps;
    if (result.x.length > 0 && x <= result.x[result.x.length - 1]!) continue;
    result.x.push(x);
    result.y.push(found);
  }
  return result;
}

function generated(rows: readonly ValidationRow[]): ValidationRow | undefined {
  return rows.find((row) => row.name === "generated") ?? rows[rows.length - 1];
}

const percentage = (error: number | null | undefined) =>
  error === null || error === undefined ? null : 100 * error;

// The merit alone does not tell noise from showers.
function warnings(rows: readonly ValidationRow[], columns: number): HTMLElement[] {
  return rows.filter((row) => row.comparison?.unlike?.length).map((row) =>
    make("tr", {}, make("td", { colspan: columns }, `! ${row.name}: nothing like the data (`
      + `${row.comparison!.unlike!.join(", ")}), so that its merit means nothing`)));
}

function table(run: ShownRun, several: boolean): HTMLElement {
  const last = run.state.validations[run.state.validations.length - 1]!;
  const head = ["Sample", "Events", "Response", "Error", "Width", "Error", "Longitudinal",
    "Transverse", "Hits", "Error", "Merit"];
  const rows = last.rows.map((row) => {
    const c = row.comparison;
    const cells = [count(row.events), percent(row.sampling_fraction?.mean),
      percent(c?.sampling_fraction_error), percent(row.sampling_fraction?.deviation),
      percent(c?.sampling_fraction_width_error), percent(c?.longitudinal_error),
      percent(c?.transverse_error), figure(row.hits?.mean), percent(c?.hits_error),
      `${figure(c?.merit?.total)}${c?.unlike?.length ? " !" : ""}`];
    return make("tr", {}, make("th", { scope: "row" }, row.name),
      ...cells.map((cell) => make("td", {}, cell)));
  });
  return make("table", { class: "figures" },
    make("caption", {}, `${several ? `${run.label}: v` : "V"}alidation of step ${count(last.step)}`),
    make("thead", {}, make("tr", {}, ...head.map((h) => make("th", { scope: "col" }, h)))),
    make("tbody", {}, ...rows), make("tfoot", {}, ...warnings(last.rows, head.length)));
}
