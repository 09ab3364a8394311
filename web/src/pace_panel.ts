// The pace of the run, the parts of its steps' time, and its cost.

import { Chart } from "./chart.ts";
import type { Curve } from "./curve.ts";
import { make, setText } from "./elements.ts";
import { Figures } from "./figures.ts";
import { count, duration, figure } from "./format.ts";
import { HistoryAxis, historyKey } from "./history_curves.ts";
import { curveStyle } from "./palette.ts";
import { Fingerprint, type Panel, section, type ShownRun } from "./panel.ts";
import { PoolControl } from "./pool_control.ts";
import type { Zoom } from "./zoom.ts";

const PARTS = ["load", "compute", "reduce", "apply"];

export class PacePanel implements Panel {
  readonly element: HTMLElement;
  private rate: Chart;
  private parts: Chart[] = [];
  private grid: HTMLElement;
  private costs: Cost[] = [];
  private costBox = make("div", { class: "costs" });
  private seen = new Fingerprint();

  constructor(private readonly zoom: Zoom) {
    this.rate = new Chart(zoom);
    this.grid = make("div", { class: "charts" }, this.rate.element);
    this.element = section("pace", "Pace and cost", undefined, this.grid, this.costBox);
  }

  show(runs: readonly ShownRun[]): void {
    while (this.costs.length > runs.length) this.costs.pop()!.element.remove();
    runs.forEach((run, i) => {
      let cost = this.costs[i];
      if (!cost) {
        this.costs.push((cost = new Cost()));
        this.costBox.append(cost.element);
      }
      cost.show(run, runs.length > 1);
    });
    if (!this.seen.changed(historyKey(runs))) return;
    const axis = new HistoryAxis();
    const marks = axis.marks(runs);
    const several = runs.length > 1;
    this.rate.show({
      title: "Events per second", marks, log: false, axis: axis.axis,
      curves: runs.map((run, i) => axis.curve(run, several, "events_per_second",
        several ? "" : "events/s", "", curveStyle(i))).filter((curve) => curve !== undefined),
    });
    while (this.parts.length > runs.length) this.parts.pop()!.element.remove();
    runs.forEach((run, i) => {
      let chart = this.parts[i];
      if (!chart) {
        this.parts.push((chart = new Chart(this.zoom)));
        this.grid.append(chart.element);
      }
      const title = several ? `Seconds per step, ${run.label}` : "Seconds per step";
      chart.show({ title, curves: stacked(run, axis), marks: axis.marks([run]), log: false,
        axis: axis.axis });
    });
  }

  repaint(): void {
    this.rate.repaint();
    for (const chart of this.parts) chart.repaint();
  }
}

// The cost of a run so far, and what it shall have.
class Cost {
  private name = make("h3", {});
  private figures = new Figures("What it took");
  private control = new PoolControl();
  readonly element = make("div", {}, this.name, this.figures.element, this.control.element);

  show(shown: ShownRun, several: boolean): void {
    const { label, state: { progress, run, bill } } = shown;
    this.control.show(shown);
    setText(this.name, label);
    this.name.hidden = !several;
    if (!progress) return;
    this.figures.set("Events/s", figure(progress.events_per_second));
    this.figures.set("Time taken", duration(progress.newest - progress.began));
    this.figures.set("Node hours", figure(progress.node_hours));
    this.figures.set("Core hours", figure(progress.core_hours));
    const isPriced = (run && run.price_per_node_hour > 0) || bill;
    this.figures.set("Cost", isPriced ? figure(progress.cost, 4) : undefined);
    for (const pool of bill?.pools ?? []) {
      this.figures.set(`Pool ${pool.name}`, `${count(pool.running)} of ${count(pool.wanted)} nodes, ` +
        `${figure(pool.node_hours)} h, ${figure(pool.cost, 4)}`);
    }
    this.figures.set("Pools an epoch", bill?.cost_per_epoch != null ? figure(bill.cost_per_epoch, 4) : undefined);
    this.figures.set("Pools at the end", bill?.cost_at_end != null
      ? `${figure(bill.cost_at_end, 4)} (at first ${figure(bill.first_cost ?? bill.cost_at_end, 4)})` : undefined);
    this.figures.set("Metrics dropped", count(progress.dropped), progress.dropped > 0);
  }
}

// Each on top of those before it; the highest first, so that the others are drawn in front of it.
function stacked(run: ShownRun, axis: HistoryAxis): Curve[] {
  const result: Curve[] = [];
  let below: number[] = [];
  PARTS.forEach((part, which) => {
    const curve = axis.curve(run, false, `seconds/${part}`, part, "s", curveStyle(0, which));
    if (!curve) return;
    const { low: _low, high: _high, raw: _raw, ...plain } = curve;
    const top = curve.y.map((value, i) => value + (below[i] ?? 0));
    result.unshift({ ...plain, y: top, values: curve.y, filled: true });
    below = top;
  });
  return result;
}
