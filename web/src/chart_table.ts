// A chart's numbers as a table, for those who do not see the curves, or want the figures.

import { type Curve, pointAt } from "./curve.ts";
import { make, setText } from "./elements.ts";
import { duration, figure } from "./format.ts";
import type { Range } from "./zoom.ts";

const ROWS = 20;

export function legendValue(curve: Curve, index: number): string {
  if (index < 0) return "–";
  return valueText((curve.values ?? curve.y)[index], curve.unit);
}

export function valueText(value: number | undefined, unit: string): string {
  if (unit === "s") return duration(value);
  return unit ? `${figure(value)} ${unit}` : figure(value);
}

export class ChartTable {
  readonly element: HTMLDetailsElement;
  private table = make("table", {});
  private summary = make("summary", {}, "Table");

  constructor(private readonly fill: () => void) {
    this.element = make("details", { class: "data-table" }, this.summary,
      make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of values" },
        this.table));
    this.element.addEventListener("toggle", () => this.fill());
  }

  // Names the table after its chart, as a screen reader may meet it out of context.
  name(title: string): void {
    setText(this.summary, `Table`);
    this.summary.setAttribute("aria-label", `Table: ${title}`);
    this.element.querySelector(".scroll")!.setAttribute("aria-label", `Values: ${title}`);
  }

  get open(): boolean {
    return this.element.open;
  }

  show(xName: string, xText: (x: number) => string, curves: readonly Curve[], range: Range): void {
    const head = make("tr", {}, make("th", { scope: "col" }, xName),
      ...curves.map((curve) => make("th", { scope: "col" }, curve.label)));
    const rows: HTMLElement[] = [];
    const [low, high] = range;
    for (let i = 0; i < ROWS && high >= low; ++i) {
      const x = high - ((high - low) * i) / (ROWS - 1);
      rows.push(make("tr", {}, make("th", { scope: "row" }, xText(x)),
        ...curves.map((curve) => make("td", {}, legendValue(curve, pointAt(curve, x))))));
      if (high === low) break;
    }
    this.table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
  }
}

// One sentence that names the curves and their newest values.
export function sentence(title: string, curves: readonly Curve[], extent: string): string {
  if (curves.every((curve) => curve.x.length === 0)) return `${title}: nothing yet.`;
  const parts = curves.map((curve) => {
    const values = (curve.values ?? curve.y).filter(Number.isFinite);
    let [low, high] = [Infinity, -Infinity];
    for (const v of values) [low, high] = [Math.min(low, v), Math.max(high, v)];
    return `${curve.label} now ${legendValue(curve, curve.x.length - 1)}, ` +
      `between ${figure(low)} and ${figure(high)}`;
  });
  return `${title} over ${extent}: ${parts.join("; ")}.`;
}
