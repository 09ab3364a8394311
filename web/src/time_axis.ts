// The time at which a step was committed. Series know steps alone; marks and validations know both.
// A series "time" (seconds since 1970 of each step), if there is one, gives the time of every step.

import type { RunState } from "./run_state.ts";

export class TimeAxis {
  private steps: number[] = [];
  private times: number[] = [];

  constructor(state: RunState) {
    const known = new Map<number, number>();
    const progress = state.progress;
    for (const mark of state.marks) if (mark.time > 0) known.set(mark.step, mark.time);
    for (const one of state.validations) if (one.time > 0) known.set(one.step, one.time);
    if (progress && progress.began > 0 && !known.has(0)) known.set(0, progress.began);
    if (progress && progress.newest > 0) known.set(progress.steps, progress.newest);
    const series = state.series.get("time");
    // The last number a point stands for is its highest, and x is that one's.
    series?.x.forEach((step, i) => known.set(step, series.high[i]!));
    let latest = -Infinity;
    for (const [step, time] of [...known].sort((a, b) => a[0] - b[0])) {
      latest = Math.max(latest, time);
      this.steps.push(step);
      this.times.push(latest);
    }
  }

  // Seconds since 1970; between and beyond what is known along straight lines.
  at(step: number): number {
    const { steps, times } = this;
    if (steps.length === 0) return 0;
    if (steps.length === 1) return times[0]!;
    let low = 0;
    let high = steps.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (steps[middle]! <= step) low = middle;
      else high = middle;
    }
    const span = steps[high]! - steps[low]!;
    return times[low]! + (times[high]! - times[low]!) * (step - steps[low]!) / (span || 1);
  }
}
