// Data as points, generated as steps, and below them the ratio of the two.

import { evenTicks, linearRange, logRange, logTicks } from "./chart_scale.ts";
import { draw, make, setAttribute, setText } from "./elements.ts";
import { figure, tickTexts } from "./format.ts";
import type { Range } from "./zoom.ts";

export interface ComparisonContent {
  title: string;
  xName: string;
  yName: string;
  low: number;   // the first bin's lower edge
  high: number;  // the last one's upper edge
  data: number[];
  generated: { label: string; values: number[]; colour: number }[];
  log: boolean;
}

// From above: the name of the upright axis, the upper plot down to TOP, the ratio's name, the ratio.
const ROOF = 16;
const TOP = 168;
const RATIO = 60;
const GAP = 26;
const LEFT = 44;
const RIGHT = 18;
const BOTTOM = 34;
const RATIO_RANGE: Range = [0, 2];

export class ComparisonPlot {
  readonly element: HTMLElement;
  private heading = make("h3", {});
  private box = make("div", { class: "comparison" });
  private words = make("p", { class: "for-readers" });
  private table = make("table", {});
  private details: HTMLDetailsElement;
  private summary = make("summary", {}, "Table");
  private content: ComparisonContent | undefined;

  constructor() {
    this.details = make("details", { class: "data-table", ontoggle: () => this.fill() }, this.summary,
      make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Values" }, this.table));
    this.element = make("figure", { class: "chart" }, this.heading, this.box, this.words, this.details);
    new ResizeObserver(() => this.paint()).observe(this.box);
  }

  show(content: ComparisonContent): void {
    this.content = content;
    setText(this.heading, content.title);
    setAttribute(this.summary, "aria-label", `Table: ${content.title}`);
    setAttribute(this.table.parentElement!, "aria-label", `Values: ${content.title}`);
    setText(this.words, words(content));
    this.paint();
    this.fill();
  }

  private paint(): void {
    const content = this.content;
    const width = this.box.clientWidth;
    if (!content || width < 60 || content.data.length === 0) return;
    const height = TOP + GAP + RATIO + BOTTOM;
    const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    const bins = content.data.length;
    const x = (edge: number) => LEFT + ((width - LEFT - RIGHT) * edge) / bins;
    const all = [content.data, ...content.generated.map((g) => g.values)].flat()
      .filter((v) => Number.isFinite(v) && (!content.log || v > 0));
    const [least, most] = [Math.min(...all), Math.max(...all)];
    const found = all.length > 0;
    const range = content.log ? logRange(found ? least : null, most)
      : linearRange(found ? Math.min(0, least) : null, most);
    const scale = content.log ? Math.log10 : (v: number) => v;
    const [low, high] = [scale(range[0]), scale(range[1])];
    const y = (v: number) => content.log && v <= 0 ? TOP
      : Math.min(TOP, TOP - ((TOP - ROOF) * (scale(v) - low)) / (high - low || 1));
    const ry = (v: number) => TOP + GAP + RATIO -
      (RATIO * (Math.min(RATIO_RANGE[1], Math.max(0, v)) - RATIO_RANGE[0])) / RATIO_RANGE[1];
    svg.append(...ticks(content.log ? logTicks(range[0], range[1], 5) : evenTicks(range[0], range[1], 4),
      y, width), ...ticks([0.5, 1, 1.5], ry, width), ...this.xTicks(content, x, width));
    svg.append(draw("rect", { class: "tolerance", x: LEFT, width: width - LEFT - RIGHT, y: ry(1.1),
      height: ry(0.9) - ry(1.1) }), draw("line", { class: "one", x1: LEFT, x2: width - RIGHT, y1: ry(1), y2: ry(1) }));
    for (const { values, colour } of content.generated) {
      svg.append(draw("path", { class: `steps stroke-${colour}`, d: stairs(values.map(y), x) }));
      const ratio = values.map((v, i) => v / content.data[i]!);
      svg.append(...ratio.map((v, i) => Number.isFinite(v) && draw("circle", {
        class: `point stroke-${colour}`, cx: x(i + 0.5), cy: ry(v), r: 2 })).filter((c) => c !== false));
    }
    svg.append(...content.data.map((v, i) => !(content.log && v <= 0) && draw("circle", {
      class: "data-point", cx: x(i + 0.5), cy: y(v), r: bins > 40 ? 1.6 : 2.6,
    })).filter((c) => c !== false));
    svg.append(draw("text", { class: "axis-name", x: LEFT, y: 10 }, content.yName),
      draw("text", { class: "axis-name", x: LEFT, y: TOP + GAP - 8 }, "generated / data"));
    this.box.replaceChildren(svg);
  }

  private xTicks(content: ComparisonContent, x: (edge: number) => number, width: number): SVGElement[] {
    const bins = content.data.length;
    const per = (content.high - content.low) / bins;
    const bottom = TOP + GAP + RATIO;
    const ticks = evenTicks(content.low, content.high, width / 60);
    const texts = tickTexts(ticks);
    const marks = ticks.map((v, i) => draw("text", {
      class: "tick", x: x((v - content.low) / per), y: bottom + 14, "text-anchor": "middle",
    }, texts[i]));
    return [...marks, draw("text", { class: "axis-name", x: width - RIGHT, y: bottom + 29, "text-anchor": "end" },
      content.xName)];
  }

  private fill(): void {
    const content = this.content;
    if (!content || !this.details.open) return;
    const per = (content.high - content.low) / content.data.length;
    const names = content.generated.map((g) => g.label);
    this.table.replaceChildren(
      make("thead", {}, make("tr", {}, ...[content.xName, "data", ...names, ...names.map((n) => `${n} / data`)]
        .map((h) => make("th", { scope: "col" }, h)))),
      make("tbody", {}, ...content.data.map((v, i) => make("tr", {},
        make("th", { scope: "row" }, figure(content.low + i * per)), make("td", {}, figure(v)),
        ...content.generated.map((g) => make("td", {}, figure(g.values[i]))),
        ...content.generated.map((g) => make("td", {}, figure(g.values[i]! / v)))))));
  }
}

function ticks(values: number[], y: (v: number) => number, width: number): SVGElement[] {
  const texts = tickTexts(values);
  return values.flatMap((v, i) => [
    draw("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(v), y2: y(v) }),
    draw("text", { class: "tick", x: LEFT - 5, y: y(v) + 4, "text-anchor": "end" }, texts[i]),
  ]);
}

function stairs(heights: number[], x: (edge: number) => number): string {
  return heights.map((h, i) => `${i === 0 ? "M" : "L"}${x(i)} ${h}L${x(i + 1)} ${h}`).join("");
}

function words(content: ComparisonContent): string {
  const parts = content.generated.map(({ label, values }) => {
    const ratios = values.map((v, i) => v / content.data[i]!).filter(Number.isFinite);
    if (ratios.length === 0) return `${label}: nothing to compare`;
    const inside = ratios.filter((r) => Math.abs(r - 1) <= 0.1).length;
    return `${label} over data lies between ${figure(Math.min(...ratios))} and ` +
      `${figure(Math.max(...ratios))}, within 10 % in ${inside} of ${ratios.length} bins`;
  });
  return `${content.title}: ${parts.join("; ")}.`;
}
