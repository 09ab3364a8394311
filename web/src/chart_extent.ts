// The part of its curves that a chart shows, and the points outside of it.

import { linearRange, logRange, usualRange } from "./chart_scale.ts";
import { type Curve, pointAt } from "./curve.ts";
import { count } from "./format.ts";
import type { Range } from "./zoom.ts";

// Points above or below the scale.
export interface Beyond {
  xs: Set<number>;
  extreme: number;  // the value furthest away
}

export interface Extent {
  range: Range;  // of the upright axis
  above: Beyond;
  below: Beyond;
}

// The extent of the points from one x to another. `roof`: see linearRange().
export function extentOf(curves: readonly Curve[], [from, to]: Range, log: boolean, roof: number):
    Extent {
  let [low, high]: [number | null, number | null] = [null, null];
  const above: Beyond = { xs: new Set(), extreme: -Infinity };
  const below: Beyond = { xs: new Set(), extreme: Infinity };
  const parts = curves.map((curve) => {
    let first = pointAt(curve, from);
    if (first < 0 || curve.x[first]! < from) ++first;
    const part = (values: readonly number[]) => values.slice(first, pointAt(curve, to) + 1);
    const [tops, bottoms] = [curve.high ?? curve.raw ?? curve.y, curve.low ?? curve.raw ?? curve.y];
    return { x: part(curve.x), tops: part(tops), bottoms: part(bottoms), y: part(curve.y) };
  });
  for (const { tops, bottoms, y } of parts) {
    for (const column of new Set([tops, bottoms, y])) {
      const usual = usualRange(column, log);
      if (!usual) continue;
      low = Math.min(low ?? Infinity, usual[0]);
      high = Math.max(high ?? -Infinity, usual[1]);
    }
  }
  const range = log ? logRange(low, high, roof) : linearRange(low, high, roof);
  for (const { x, tops, bottoms } of parts) {
    x.forEach((at, i) => {
      if (tops[i]! > range[1]) {
        above.xs.add(at);
        above.extreme = Math.max(above.extreme, tops[i]!);
      }
      if (bottoms[i]! < range[0]) {
        below.xs.add(at);
        below.extreme = Math.min(below.extreme, bottoms[i]!);
      }
    });
  }
  return { range, above, below };
}

// "▲ 1 point above the scale, at 40 s"; "" where all points are shown.
export function outsideText({ above, below }: Extent, valueText: (value: number) => string): string {
  const told = ({ xs, extreme }: Beyond, where: string, upTo: string, arrow: string) => xs.size === 0 ? ""
    : xs.size === 1 ? `${arrow} 1 point ${where} the scale, at ${valueText(extreme)}`
      : `${arrow} ${count(xs.size)} points ${where} the scale, ${upTo} ${valueText(extreme)}`;
  return [told(above, "above", "up to", "▲"), told(below, "below", "down to", "▼")]
    .filter(Boolean).join(", ");
}
