// One chart per term of the loss; in each a curve per slot of the schedule, and per run.

import { Chart } from "./chart.ts";
import type { Curve } from "./curve.ts";
import { make } from "./elements.ts";
import { HistoryAxis, historyKey } from "./history_curves.ts";
import { historyTools } from "./history_tools.ts";
import { curveStyle } from "./palette.ts";
import { Fingerprint, type Panel, section, type ShownRun } from "./panel.ts";
import { preference } from "./preferences.ts";
import type { Zoom } from "./zoom.ts";

export class LossPanel implements Panel {
  readonly element: HTMLElement;
  private charts = new Map<string, Chart>();
  private grid = make("div", { class: "charts" });
  private empty = make("p", { class: "empty", hidden: true }, "No step has been made yet.");
  private seen = new Fingerprint();

  constructor(private readonly zoom: Zoom) {
    this.element = section("losses", "Losses",
      historyTools(zoom, () => [...this.charts.values()][0]?.all ?? [0, 1]),
      make("p", { class: "legend-of-marks", "aria-hidden": true },
        make("span", { class: "mark of-checkpoint" }, make("span", { class: "shape" }), "checkpoint"),
        make("span", { class: "mark of-validation" }, make("span", { class: "shape" }), "validation"),
        make("span", { class: "mark of-node" }, make("span", { class: "shape" }), "members")),
      this.empty, this.grid);
  }

  show(runs: readonly ShownRun[]): void {
    if (!this.seen.changed(historyKey(runs))) return;
    const axis = new HistoryAxis();
    const marks = axis.marks(runs);
    const terms = termsOf(runs);
    this.empty.hidden = terms.length > 0;
    for (const term of terms) {
      let chart = this.charts.get(term);
      if (!chart) {
        this.charts.set(term, (chart = new Chart(this.zoom)));
        this.grid.append(chart.element);
      }
      chart.show({
        title: titleOf(term, runs), curves: curvesOf(term, runs, axis), marks,
        log: preference("logScale"), axis: axis.axis,
      });
    }
    for (const [term, chart] of this.charts) {
      if (terms.includes(term)) continue;
      chart.element.remove();
      this.charts.delete(term);
    }
  }

  repaint(): void {
    for (const chart of this.charts.values()) chart.repaint();
  }
}

// In the order in which the run tells its losses; others behind.
function termsOf(runs: readonly ShownRun[]): string[] {
  const terms = new Set(runs.flatMap((run) => (run.state.run?.losses ?? []).map(([name]) => name)));
  const found = new Set<string>();
  for (const run of runs) {
    for (const name of run.state.series.keys()) {
      const [kind, slot, ...words] = name.split("/");
      const term = words.join("/");  // "g/generation" of workers that train alone
      if (kind === "loss" && slot && term) found.add(term);
    }
  }
  return [...new Set([...terms, ...found])].filter((term) => found.has(term));
}

function titleOf(term: string, runs: readonly ShownRun[]): string {
  const weight = runs[0]?.state.run?.losses.find(([name]) => name === term)?.[1];
  return weight === undefined ? term : `${term}, weight ${weight}`;
}

function curvesOf(term: string, runs: readonly ShownRun[], axis: HistoryAxis): Curve[] {
  const slots = [...new Set(runs.flatMap((run) => {
    const told = run.state.run?.schedule ?? [];
    const others = [...run.state.series.keys()].map((name) => name.split("/"))
      .filter((parts) => parts[0] === "loss").map((parts) => parts[1]!);
    return [...told, ...others].filter((slot) => slot !== "statistics"); // rounds have no losses
  }))];
  return runs.flatMap((run, i) => slots.map((slot, s) => axis.curve(run, runs.length > 1,
    `loss/${slot}/${term}`, slot, "", curveStyle(i, s, slots.length))))
    .filter((curve) => curve !== undefined);
}
