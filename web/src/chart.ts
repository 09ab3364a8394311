// Curves over the run: drawn by uPlot, read by mouse, touch and keyboard, and told in words.

import uPlot from "uplot";

import { column, type Curve, type PlacedMark, pointAt, union } from "./curve.ts";
import { type Extent, extentOf, outsideText } from "./chart_extent.ts";
import { marksPlugin, roomForMarks } from "./chart_marks.ts";
import { evenTicks, logTicks } from "./chart_scale.ts";
import { ChartTable, legendValue, sentence, valueText } from "./chart_table.ts";
import { make, setAttribute, setText, uniqueId } from "./elements.ts";
import { count, dateAndTime, tickTexts, timeOfDay } from "./format.ts";
import { canvasFont, colour, DASHES, seriesColour } from "./palette.ts";
import type { Range, Zoom } from "./zoom.ts";

export interface ChartContent {
  title: string;
  curves: Curve[];
  marks: PlacedMark[];
  log: boolean;
  axis: "step" | "time" | "epoch";
}

const KEYS = "Arrow keys read values, with Shift they move along the run, plus and minus zoom, " +
  "0 shows all.";

export class Chart {
  readonly element: HTMLElement;
  // Reads as a slider: its value is the point under the cursor.
  readonly plot: HTMLElement;
  // How many points it was last given, of all curves together.
  points = 0;

  private heading = make("h3", {});
  private legend = make("ul", { class: "legend" });
  private outside = make("p", { class: "note outside", hidden: true });
  private summary = make("p", { class: "for-readers", id: uniqueId("summary") });
  private table = new ChartTable(() => this.fillTable());
  private content: ChartContent | undefined;
  private extent: Extent = extentOf([], [0, 1], false, 0);
  private u: uPlot | undefined;
  private shape = "";
  private xs: number[] = [];
  private cursor: number | undefined;  // an x

  constructor(private readonly zoom: Zoom) {
    this.plot = make("div", {
      class: "plot", tabindex: 0, role: "slider", "aria-valuemin": 0,
      "aria-valuemax": 0, "aria-valuenow": 0, "aria-describedby": this.summary.id,
      onkeydown: (event: KeyboardEvent) => this.key(event),
    });
    // It has neither name nor value before there is something to show.
    this.element = make("figure", { class: "chart", hidden: true }, this.heading, this.legend, this.outside,
      this.plot,
      this.summary, this.table.element);
    new ResizeObserver(() => this.resize()).observe(this.plot);
    zoom.onChange(() => this.zoomed());
  }

  show(given: ChartContent): void {
    // A curve that is never above 0 has no point on a logarithmic scale.
    const log = given.log && given.curves.some((curve) => curve.y.some((v) => v > 0));
    const content = { ...given, log };
    this.content = content;
    this.element.hidden = false;
    this.points = content.curves.reduce((sum, curve) => sum + curve.x.length, 0);
    this.element.dataset["points"] = String(this.points);
    setText(this.heading, content.title);
    this.table.name(content.title);
    this.xs = union(content.curves);
    const shape = JSON.stringify([content.log, content.axis, roomForMarks(content.marks),
      content.curves.map((c) => [c.label, c.colour, c.dash, !!c.low, !!c.raw, !!c.filled])]);
    const data = this.columns(content);
    this.measure(content);
    if (!this.u || shape !== this.shape) {
      this.shape = shape;
      this.build(content, data);
    } else {
      this.u.setData(data, false);
    }
    this.place();
    setText(this.summary, `${sentence(content.title, content.curves, this.span())} ${KEYS}`);
  }

  // After the colours have changed.
  repaint(): void {
    this.shape = "";
    if (this.content) this.show(this.content);
  }

  get all(): Range {
    const last = this.xs[this.xs.length - 1] ?? 0;
    // The mark of the end stands behind the last step.
    return [this.xs[0] ?? 0, Math.max(last, ...(this.content?.marks.slice(-8).map((m) => m.x) ?? []))];
  }

  private get range(): Range {
    return this.zoom.range ?? this.all;
  }

  // A faint companion or a band stands in front of its curve's column.
  private columns(content: ChartContent): uPlot.AlignedData {
    const data: (number | null)[][] = [];
    for (const curve of content.curves) {
      if (curve.low && curve.high) {
        data.push(column(this.xs, curve, curve.low, content.log));
        data.push(column(this.xs, curve, curve.high, content.log));
      }
      if (curve.raw) data.push(column(this.xs, curve, curve.raw, content.log));
      data.push(column(this.xs, curve, curve.y, content.log));
    }
    return [this.xs, ...data] as uPlot.AlignedData;
  }

  private build(content: ChartContent, data: uPlot.AlignedData): void {
    this.u?.destroy();
    const series: uPlot.Series[] = [{}];
    const bands: uPlot.Band[] = [];
    const none = { show: true, stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
    for (const curve of content.curves) {
      const paint = seriesColour(curve.colour);
      if (curve.low && curve.high) {
        series.push({ ...none }, { ...none });
        bands.push({ series: [series.length - 1, series.length - 2], fill: `${paint}2e` });
      }
      if (curve.raw) series.push({ ...none, stroke: `${paint}55`, width: 1 });
      series.push({
        label: curve.label, stroke: paint, width: curve.filled || (curve.x.length > 400 && !curve.raw && !curve.low) ? 1 : 1.75, spanGaps: true,
        dash: DASHES[curve.dash % DASHES.length]!, points: { show: curve.x.length === 1, size: 6, fill: paint },
        ...(curve.filled ? { fill: paint } : {}),
      });
    }
    const line = { stroke: () => colour("muted"), font: canvasFont(),
      grid: { stroke: () => colour("rule"), width: 1 }, ticks: { show: false } };
    this.u = new uPlot({
      width: Math.max(120, this.plot.clientWidth), height: this.plot.clientHeight || 200,
      padding: [roomForMarks(content.marks), 16, 0, 0],
      legend: { show: false }, series, bands,
      cursor: { drag: { x: true, y: false, setScale: false }, sync: { key: content.axis, scales: ["x", null] },
        points: { show: false } },
      scales: {
        x: { time: content.axis === "time", auto: false, range: () => this.spread() },
        y: { distr: content.log ? 3 : 1, range: () => this.extent.range },
      },
      axes: [
        { ...line, space: 70, size: 26,
          ...(content.axis === "time" ? {} : { values: (_u: uPlot, v: number[]) =>
            v.map((x) => Number.isInteger(x) ? count(x) : "") }) },
        { ...line, size: (u, texts) => widthOf(u, texts ?? []),
          splits: (u, _i, low, high) => (content.log ? logTicks : evenTicks)(low, high, u.height / 45),
          filter: (_u, ticks) => ticks,
          values: (_u, ticks) => tickTexts(ticks) },
      ],
      hooks: {
        setSelect: [(u) => this.select(u)],
        setCursor: [(u) => this.follow(u)],
      },
      plugins: [marksPlugin(() => this.content?.marks ?? [], () => this.extent)],
    }, data, this.plot);
    this.u.over.addEventListener("dblclick", () => this.zoom.set(null));
  }

  private measure(content: ChartContent): void {
    this.extent = extentOf(content.curves, this.spread(), content.log, 0.07);
    const text = outsideText(this.extent, (value) => valueText(value, content.curves[0]?.unit ?? ""));
    setText(this.outside, text);
    this.outside.hidden = text === "";
  }

  private spread(): Range {
    const [low, high] = this.range;
    return high > low ? [low, high] : [low - 0.5, low + 0.5];
  }

  private zoomed(): void {
    if (!this.content) return;
    this.measure(this.content);
    this.place();
  }

  private place(): void {
    if (!this.u || !this.content) return;
    const [low, high] = this.spread();
    this.u.setScale("x", { min: low, max: high });
    const [from, to] = this.all;
    setAttribute(this.plot, "aria-label", this.content.title);
    setAttribute(this.plot, "aria-valuemin", String(from));
    setAttribute(this.plot, "aria-valuemax", String(to));
    this.fillLegend();
    if (this.table.open) this.fillTable();
  }

  private select(u: uPlot): void {
    if (u.select.width < 4) return;
    const range: Range = [u.posToVal(u.select.left, "x"),
      u.posToVal(u.select.left + u.select.width, "x")];
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.zoom.set(range);
  }

  private follow(u: uPlot): void {
    const left = u.cursor.left ?? -1;
    this.cursor = left < 0 ? undefined : u.posToVal(left, "x");
    this.fillLegend();
  }

  private xText(x: number): string {
    const axis = this.content?.axis;
    return axis === "time" ? timeOfDay(x) : `${axis ?? "step"} ${count(Math.round(x))}`;
  }

  private span(): string {
    const [from, to] = this.all;
    if (this.content?.axis === "time") return `${dateAndTime(from)} to ${dateAndTime(to)}`;
    return `${this.content?.axis ?? "step"}s ${count(from)} to ${count(to)}`;
  }

  private fillLegend(): void {
    const { content, cursor } = this;
    if (!content) return;
    const x = cursor ?? this.range[1];
    while (this.legend.children.length > content.curves.length) this.legend.lastChild!.remove();
    content.curves.forEach((curve, i) => {
      let item = this.legend.children[i];
      if (!item) {
        item = make("li", {}, make("span", { class: "swatch" }), make("span", { class: "name" }),
          make("span", { class: "value" }));
        this.legend.append(item);
      }
      setAttribute(item.children[0]!, "class",
        `swatch colour-${curve.colour} dash-${curve.dash % DASHES.length}${curve.filled ? " filled" : ""}`);
      setText(item.children[1]!, curve.label);
      setText(item.children[2]!, legendValue(curve, pointAt(curve, x)));
    });
    const text = content.curves.map((c) => `${c.label} ${legendValue(c, pointAt(c, x))}`);
    setAttribute(this.plot, "aria-valuenow", String(x));
    setAttribute(this.plot, "aria-valuetext", `${this.xText(x)}: ${text.join(", ")}`);
  }

  private fillTable(): void {
    if (!this.content) return;
    const [low, high] = this.range;
    const name = this.content.axis;
    this.table.show(name === "time" ? "Time" : name === "epoch" ? "Epoch" : "Step",
      (x) => name === "time" ? timeOfDay(x) : count(Math.round(x)), this.content.curves, [low, high]);
  }

  private key(event: KeyboardEvent): void {
    if (event.target !== this.plot || event.ctrlKey || event.metaKey || event.altKey) return;
    const sign = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (sign !== 0 && event.shiftKey) this.zoom.pan(0.25 * sign, this.all);
    else if (sign !== 0) this.step(sign);
    else if (event.key === "+" || event.key === "=") this.zoom.scale(0.5, this.all, this.cursor);
    else if (event.key === "-") this.zoom.scale(2, this.all, this.cursor);
    else if (event.key === "0" || event.key === "Escape") this.zoom.set(null);
    else return;
    event.preventDefault();
  }

  // Moves the cursor over what is shown, by a hundredth of it or by a point, whichever is more.
  private step(sign: number): void {
    if (!this.u) return;
    const [low, high] = this.range;
    const from = this.cursor ?? high;
    const by = Math.max((high - low) / 100, this.content?.axis === "time" ? 0.001 : 1);
    const x = Math.min(high, Math.max(low, from + sign * by));
    this.u.setCursor({ left: this.u.valToPos(x, "x"), top: 10 });
    this.cursor = x;
    this.fillLegend();
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.plot;
    if (this.u && clientWidth > 0) this.u.setSize({ width: clientWidth, height: clientHeight });
  }
}

// Room for ticks beside the curves, in pixels.
function widthOf(u: uPlot, texts: readonly string[]): number {
  u.ctx.font = canvasFont();
  return Math.max(52, 14 + Math.ceil(Math.max(0, ...texts.map((text) => u.ctx.measureText(text).width))));
}
