// Marks of a run across its curves: members that come and go as lines with a label, checkpoints
// and validations, of which there are many, as small shapes. Shapes and labels stand above the
// curves, points outside of the scale as arrows at its edge.

import type uPlot from "uplot";

import type { Extent } from "./chart_extent.ts";
import type { PlacedMark } from "./curve.ts";
import { canvasFont, canvasTextSize, colour } from "./palette.ts";

const LABEL = 26;
const ROWS = 2;
// In pixels: from the curves up to the labels, and between two rows of them.
const SHAPES = 20;
const LEADING = 1.3;
const shapes = ["checkpoint", "validation"];

function isLine(mark: PlacedMark): boolean {
  return !shapes.includes(mark.kind) && mark.text !== "";
}

// Room that marks take above the curves, in pixels.
export function roomForMarks(marks: readonly PlacedMark[]): number {
  if (marks.length === 0) return 8;
  return SHAPES + (marks.some(isLine) ? Math.ceil(ROWS * LEADING * canvasTextSize()) : 0);
}

function short(text: string): string {
  const first = text.split(/[:;(]/)[0]!.trim();
  return first.length > LABEL ? `${first.slice(0, LABEL - 1)}…` : first;
}

export interface Label {
  begin: number;
  row: number;  // counted from the curves
}

// The places of labels that are `widths` wide and whose lines are at `xs`, in ascending order;
// undefined: there is no room for that one. The newest come first. A line passes below all labels
// to its right.
export function placeLabels(xs: readonly number[], widths: readonly number[], gap: number, end: number):
    (Label | undefined)[] {
  const taken: number[] = Array.from({ length: ROWS }, () => Infinity);
  const placed = xs.map((): Label | undefined => undefined);
  for (let i = xs.length - 1; i >= 0; --i) {
    const begin = Math.min(xs[i]! + gap, end - widths[i]!);
    const row = taken.findIndex((other) => begin + widths[i]! + gap <= other);
    if (row < 0) continue;
    taken[row] = Math.min(begin, xs[i]!);
    placed[i] = { begin, row };
  }
  return placed;
}

function drawShape(ctx: CanvasRenderingContext2D, kind: string, x: number, y: number, r: number):
    void {
  ctx.beginPath();
  if (kind === "checkpoint") {
    ctx.rect(x - r * 0.8, y - r * 0.8, r * 1.6, r * 1.6);
  } else {
    ctx.moveTo(x, y - r * 1.1);
    ctx.lineTo(x + r, y);
    ctx.lineTo(x, y + r * 1.1);
    ctx.lineTo(x - r, y);
    ctx.closePath();
  }
  if (kind === "checkpoint") ctx.stroke();
  else ctx.fill();
}

// Marks that would smear are thinned out; the list beside has them all.
function drawShapes(u: uPlot, marks: readonly PlacedMark[], place: (mark: PlacedMark) => number): void {
  const ratio = devicePixelRatio;
  const last = new Map<string, number>();
  u.ctx.strokeStyle = u.ctx.fillStyle = colour("muted");
  for (const mark of marks) {
    const x = place(mark);
    if (x - (last.get(mark.kind) ?? -Infinity) < 9 * ratio) continue;
    last.set(mark.kind, x);
    drawShape(u.ctx, mark.kind, x, u.bbox.top - (mark.kind === "checkpoint" ? 13 : 5) * ratio, 3 * ratio);
  }
}

function drawLines(u: uPlot, marks: readonly PlacedMark[], place: (mark: PlacedMark) => number): void {
  const { ctx } = u;
  const ratio = devicePixelRatio;
  const { left, top, width, height } = u.bbox;
  const texts = marks.map((mark) => isLine(mark) ? short(mark.text) : "");
  const labels = placeLabels(marks.map(place), texts.map((text) => ctx.measureText(text).width), 4 * ratio,
    left + width);
  marks.forEach((mark, i) => {
    const label = isLine(mark) ? labels[i] : undefined;
    const rows = label ? label.row + 1 : 0;
    ctx.setLineDash([ratio, 3 * ratio]);
    ctx.strokeStyle = colour(isLine(mark) ? "ink" : "rule");
    ctx.beginPath();
    ctx.moveTo(place(mark), top - (label ? SHAPES * ratio + rows * LEADING * canvasTextSize() * ratio : 0));
    ctx.lineTo(place(mark), top + height);
    ctx.stroke();
  });
  ctx.setLineDash([]);
  // Behind the lines, so that none crosses a text.
  labels.forEach((label, i) => {
    if (!label || texts[i] === "") return;
    const size = canvasTextSize() * ratio;
    const y = top - SHAPES * ratio - (label.row + 1) * LEADING * size;
    ctx.fillStyle = colour("surface");
    ctx.fillRect(label.begin - ratio, y, ctx.measureText(texts[i]!).width + 2 * ratio, LEADING * size);
    ctx.fillStyle = colour("ink");
    ctx.fillText(texts[i]!, label.begin, y);
  });
}

// One arrow for points that lie close together.
function drawArrows(u: uPlot, xs: ReadonlySet<number>, up: boolean): void {
  const { ctx } = u;
  const ratio = devicePixelRatio;
  const edge = up ? u.bbox.top : u.bbox.top + u.bbox.height;
  const down = (up ? 1 : -1) * ratio;
  let last = -Infinity;
  ctx.fillStyle = colour("bad");
  for (const at of [...xs].sort((a, b) => a - b)) {
    const x = u.valToPos(at, "x", true);
    if (x - last < 8 * ratio) continue;
    last = x;
    ctx.beginPath();
    ctx.moveTo(x, edge);
    ctx.lineTo(x - 4 * ratio, edge + 7 * down);
    ctx.lineTo(x + 4 * ratio, edge + 7 * down);
    ctx.closePath();
    ctx.fill();
  }
}

export function marksPlugin(marks: () => readonly PlacedMark[], extent: () => Extent): uPlot.Plugin {
  return {
    hooks: {
      draw: (u) => {
        const { ctx } = u;
        const { left, width } = u.bbox;
        const place = (mark: PlacedMark) => Math.round(u.valToPos(mark.x, "x", true)) + 0.5;
        const seen = marks().filter((m) => place(m) >= left - 1 && place(m) <= left + width + 1)
          .sort((a, b) => a.x - b.x);
        ctx.save();
        ctx.font = canvasFont(devicePixelRatio);
        ctx.lineWidth = devicePixelRatio;
        ctx.textBaseline = "top";
        ctx.textAlign = "left";
        ctx.setLineDash([]);
        drawShapes(u, seen.filter((mark) => shapes.includes(mark.kind)), place);
        // Labelled lines last, so that they are seen where several are at one place.
        const lines = seen.filter((mark) => !shapes.includes(mark.kind));
        drawLines(u, lines.filter((mark) => !isLine(mark)), place);
        drawLines(u, lines.filter(isLine), place);
        drawArrows(u, extent().above.xs, true);
        drawArrows(u, extent().below.xs, false);
        ctx.restore();
      },
    },
  };
}
