// One curve: points that stand for `width` numbers each, kept as the server keeps them.

import { usualRange } from "./chart_scale.ts";
import type { SeriesPatch } from "./protocol.ts";

export class Series {
  width = 1;
  x: number[] = [];
  mean: number[] = [];
  low: number[] = [];
  high: number[] = [];
  // Grows with every change, so that a chart can tell whether anything is new.
  version = 0;

  apply(patch: SeriesPatch): void {
    this.width = patch.width;
    for (const key of ["x", "mean", "low", "high"] as const) {
      this[key].length = Math.min(this[key].length, patch.from);
      for (const value of patch[key]) this[key].push(value);
    }
    ++this.version;
  }

  get length(): number {
    return this.x.length;
  }

  // The newest mean; undefined of an empty series.
  get last(): number | undefined {
    return this.mean[this.mean.length - 1];
  }
}

// Averages that forget exponentially: a point weighs half as much `points` / 2 later. Points that
// stand for many numbers are smooth already, so `points` counts numbers, not points. A point far
// outside of all others, such as a slow first step, stays as it is and enters no average.
export function smoothed(values: readonly number[], points: number): number[] {
  if (points <= 1) return [...values];
  const [least, most] = usualRange(values, false) ?? [0, 0];
  const keep = Math.pow(0.5, 2 / points);
  let sum = 0;
  let weight = 0;
  return values.map((value) => {
    if (value < least || value > most) return value;
    sum = keep * sum + (1 - keep) * value;
    weight = keep * weight + (1 - keep);
    return sum / weight;
  });
}
