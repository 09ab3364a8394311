// The distance of generated showers from the data: over the epochs, and as a table of the last
// validation.

import { Chart } from "./chart.ts";
import { make } from "./elements.ts";
import { count, figure, percent } from "./format.ts";
import { curveStyle } from "./palette.ts";
import { Fingerprint, type ShownRun } from "./panel.ts";
import type { ValidationRow } from "./protocol.ts";
import { validationCurve } from "./validation_curve.ts";
import { comparisonOf, ERRORS } from "./validations.ts";
import { Zoom } from "./zoom.ts";

export class ErrorFigures {
  readonly element: HTMLElement;
  private chart = new Chart(new Zoom());
  private tables = make("div", { class: "scroll", tabindex: 0, role: "region",
    "aria-label": "Last validation" });
  private seen = new Fingerprint();

  constructor() {
    this.element = make("div", { class: "errors", hidden: true }, this.chart.element, this.tables);
  }

  show(runs: readonly ShownRun[]): void {
    const key = runs.map((r) => `${r.listed.id}${r.label}:${r.state.changes.validations}:${r.state.changes.run}`);
    if (!this.seen.changed(...key)) return;
    const several = runs.length > 1;
    const validated = runs.filter((run) => run.state.validations.length > 0);
    this.element.hidden = validated.length === 0;
    if (validated.length === 0) return;
    this.chart.show({
      title: "Difference from the data", marks: [], log: true, axis: "epoch",
      curves: runs.flatMap((run, i) => ERRORS.map(([name, label], e) =>
        validationCurve(run, several ? `${run.label} ${label}` : label, "%", curveStyle(i, e, ERRORS.length), (one) => {
          const error = comparisonOf(one)?.[name] ?? undefined;
          return error === undefined ? undefined : 100 * error;
        }))),
    });
    this.tables.replaceChildren(...validated.map((run) => table(run, several)));
  }

  repaint(): void {
    this.chart.repaint();
  }
}

// The merit alone does not tell noise from showers.
function warnings(rows: readonly ValidationRow[], columns: number): HTMLElement[] {
  return rows.filter((row) => row.comparison?.unlike?.length).map((row) => {
    const why = `! ${row.name}: nothing like the data (${row.comparison!.unlike!.join(", ")})`;
    const has_merit = typeof row.comparison!.merit?.total === "number";
    return make("tr", {}, make("td", { colspan: columns },
      has_merit ? `${why}, so that its merit means nothing` : why));
  });
}

function floors(columns: number, of_showers: boolean): HTMLElement {
  return make("tr", {}, make("td", { colspan: columns },
    of_showers
      ? "Errors of the data are what two samples drawn from them have; layers: correlations of their energies"
      : "Figures of the data are what two samples drawn from them have"));
}

// Where a loss or a classifier judges, a row has the numbers that were found by their names.
function numbersOf(row: ValidationRow): [string, number][] {
  const all = Object.entries(row.comparison ?? row.floor ?? {}) as [string, unknown][];
  return all.filter((one): one is [string, number] => typeof one[1] === "number");
}

function namedRows(rows: readonly ValidationRow[]): { head: string[], body: HTMLElement[] } {
  const names = [...new Set(rows.flatMap((row) => numbersOf(row).map(([name]) => name)))];
  const body = rows.map((row) => {
    const numbers = new Map(numbersOf(row));
    return make("tr", {}, make("th", { scope: "row" }, row.name), make("td", {}, count(row.events)),
      ...names.map((name) => make("td", {}, figure(numbers.get(name)))));
  });
  return { head: ["Sample", "Events", ...names.map((name) => name.replaceAll("_", " "))], body };
}

function showerRows(rows: readonly ValidationRow[]): { head: string[], body: HTMLElement[] } {
  const head = ["Sample", "Events", "Response", "Error", "Width", "Error", "Longitudinal",
    "Transverse", "Hits", "Error", "Layers", "Merit"];
  const body = rows.map((row) => {
    const c = row.comparison ?? row.floor;
    const cells = [count(row.events), percent(row.sampling_fraction?.mean),
      percent(c?.sampling_fraction_error), percent(row.sampling_fraction?.deviation),
      percent(c?.sampling_fraction_width_error), percent(c?.longitudinal_error),
      percent(c?.transverse_error), figure(row.hits?.mean), percent(c?.hits_error),
      figure(c?.layer_correlation_difference),
      `${figure(c?.merit?.total)}${c?.unlike?.length ? " !" : ""}`];
    return make("tr", {}, make("th", { scope: "row" }, row.name),
      ...cells.map((cell) => make("td", {}, cell)));
  });
  return { head, body };
}

function table(run: ShownRun, several: boolean): HTMLElement {
  const last = run.state.validations[run.state.validations.length - 1]!;
  const of_showers = last.rows.some((row) => row.sampling_fraction);
  const { head, body } = of_showers ? showerRows(last.rows) : namedRows(last.rows);
  return make("table", { class: "figures" },
    make("caption", {}, `${several ? `${run.label}: v` : "V"}alidation of step ${count(last.step)}`),
    make("thead", {}, make("tr", {}, ...head.map((h) => make("th", { scope: "col" }, h)))),
    make("tbody", {}, ...body), make("tfoot", {}, ...warnings(last.rows, head.length),
      ...(last.rows.some((row) => row.floor) ? [floors(head.length, of_showers)] : [])));
}
