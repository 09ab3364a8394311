// Ranges and ticks of a chart's upright axis.

import type { Range } from "./zoom.ts";

// With fewer values none is left out of a scale.
const FEW = 10;
// This part of the values may lie outside at either end; two always may.
const TAIL = 0.02;
// Values are left out only where the scale, from 0 if it is linear, would be so many times as wide
// with them.
const WORTH = 4;

const known = (low: number | null, high: number | null): boolean =>
  low !== null && high !== null && Number.isFinite(low) && Number.isFinite(high);

// From 0 where the curve comes near it.
// `roof`: room above, as a part of what is filled.
export function linearRange(low: number | null, high: number | null, roof = 0.08): Range {
  if (!known(low, high)) return [0, 1];
  const near = low! >= 0 && low! < 0.5 * high!;
  const floor = near ? 0 : low! - 0.06 * (high! - low! || Math.abs(low!) || 1);
  return [floor, high! + roof * (high! - floor || 1)];
}

export function logRange(low: number | null, high: number | null, roof = 0.06): Range {
  if (!known(low, high) || low! <= 0) return [0.1, 10];
  const span = Math.max(1.5, high! / low!);
  return [low! / Math.pow(span, 0.06), high! * Math.pow(span, roof)];
}

// The range of `values` without the few at its ends that would flatten all others, such as the first
// step of a run: those that lie further from the bulk than the bulk is wide. The newest value is
// left out only where it stands alone, so that a curve that rises is followed. null: no values.
export function usualRange(values: readonly number[], log: boolean): Range | null {
  const usable = values.filter((v) => Number.isFinite(v) && (!log || v > 0));
  const sorted = Float64Array.from(usable).sort();
  const last = sorted.length - 1;
  if (last < 0) return null;
  const all: Range = [sorted[0]!, sorted[last]!];
  if (last + 1 < FEW) return all;
  const scale = log ? Math.log10 : (v: number) => v;
  const tail = Math.max(2, Math.floor(TAIL * sorted.length));
  const [low, high] = [scale(sorted[tail]!), scale(sorted[last - tail]!)];
  const newest = usable.slice(-2);
  const from = Math.min(low - (high - low), scale(Math.max(...newest)));
  const to = Math.max(high + (high - low), scale(Math.min(...newest)));
  const inside = sorted.filter((v) => scale(v) >= from && scale(v) <= to);
  const usual: Range = [inside[0]!, inside[inside.length - 1]!];
  const width = ([a, b]: Range) => log ? scale(b) - scale(a) : Math.max(b, 0) - Math.min(a, 0);
  const worth = (more: Range, less: Range) => width(less) > 0 && width(more) > WORTH * width(less);
  const top = worth([usual[0], all[1]], usual) ? usual[1] : all[1];
  return [worth([all[0], top], [usual[0], top]) ? usual[0] : all[0], top];
}

// At most about `most` ticks at powers of ten, their 2, 3 and 5 fold, or, where the range is narrow,
// round numbers at equal distances.
export function logTicks(low: number, high: number, most: number): number[] {
  if (high / low < 4) return evenTicks(low, high, most);
  for (const factors of [[1, 2, 3, 5], [1, 2, 5], [1, 3], [1]]) {
    const ticks = decades(low, high, 1).flatMap((d) => factors.map((f) => f * d));
    const inside = ticks.filter((t) => t >= low && t <= high);
    if (inside.length <= most && inside.length > 1) return inside;
  }
  const every = Math.ceil(Math.log10(high / low) / most);
  return decades(low, high, every).filter((t) => t >= low && t <= high);
}

function decades(low: number, high: number, every: number): number[] {
  const result: number[] = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e += every) {
    result.push(Number(`1e${e}`));
  }
  return result;
}

export function evenTicks(low: number, high: number, most: number): number[] {
  const rough = (high - low) / Math.max(1, most);
  if (!(rough > 0)) return [low];
  const unit = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = unit * ([1, 2, 2.5, 5].find((f) => f * unit >= rough) ?? 10);
  const result: number[] = [];
  for (let i = Math.ceil(low / step); i * step <= high; ++i) result.push(Number((i * step).toPrecision(12)));
  return result;
}
