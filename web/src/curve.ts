// The curves of a chart, and the way in which curves with points of their own come onto one axis.

import type { Mark } from "./protocol.ts";

export interface Curve {
  label: string;
  unit: string;
  colour: number;  // of the palette
  dash: number;
  x: number[];
  y: number[];
  // The values to name in words, if they are not y: a stacked curve is drawn on top of others.
  values?: number[];
  low?: number[];
  high?: number[];
  raw?: number[];  // drawn faintly behind a smoothed curve
  filled?: boolean;
}

export interface PlacedMark extends Mark {
  x: number;
}

export type Column = (number | null)[];

// All x in order, each once.
export function union(curves: readonly Curve[]): number[] {
  const [first, ...others] = curves;
  if (!first) return [];
  if (others.every((curve) => same(curve.x, first.x))) return first.x;
  const all = new Set<number>();
  for (const curve of curves) for (const x of curve.x) all.add(x);
  return [...all].sort((a, b) => a - b);
}

// `values` of the curve at `xs`; null where it has no point, or none that can be drawn.
export function column(
  xs: readonly number[], curve: Curve, values: readonly number[], log: boolean,
): Column {
  const drawable = (v: number | undefined) =>
    v === undefined || !Number.isFinite(v) || (log && v <= 0) ? null : v;
  if (xs.length === curve.x.length) return values.map(drawable);
  const result: Column = [];
  let at = 0;
  for (const x of xs) {
    const hit = curve.x[at] === x;
    result.push(hit ? drawable(values[at]) : null);
    if (hit) ++at;
  }
  return result;
}

// Index of the last point at or before x; -1: none.
export function pointAt(curve: Curve, x: number): number {
  let low = -1;
  let high = curve.x.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (curve.x[middle]! <= x) low = middle;
    else high = middle;
  }
  return low;
}

function same(a: readonly number[], b: readonly number[]): boolean {
  return a === b || (a.length === b.length && a.every((x, i) => x === b[i]));
}
