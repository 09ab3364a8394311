// Curves and marks of chosen runs on one axis, with the viewer's choices for all of them.

import type { Curve, PlacedMark } from "./curve.ts";
import type { CurveStyle } from "./palette.ts";
import type { ShownRun } from "./panel.ts";
import { preference } from "./preferences.ts";
import { smoothed } from "./series.ts";
import { TimeAxis } from "./time_axis.ts";

export class HistoryAxis {
  readonly axis = preference("axis");
  private times = new Map<ShownRun, TimeAxis>();

  // Steps as they are, or as the times at which they were committed.
  place(run: ShownRun, steps: readonly number[]): number[] {
    if (this.axis === "step") return [...steps];
    let times = this.times.get(run);
    if (!times) this.times.set(run, (times = new TimeAxis(run.state)));
    return steps.map((step) => times.at(step));
  }

  marks(runs: readonly ShownRun[]): PlacedMark[] {
    return runs.flatMap((run) => {
      const marks = run.state.marks;
      const steps = this.axis === "time" ? [] : marks.map((mark) => mark.step);
      const named = runs.length > 1 ? `${run.label} ` : "";
      return marks.map((mark, i) => ({
        ...mark,
        text: mark.text && named + mark.text,
        x: this.axis === "step" ? steps[i]!
          : mark.time > 0 ? mark.time : this.place(run, [mark.step])[0]!,
      }));
    });
  }

  // The curve of one series; undefined where the run has none of that name.
  curve(run: ShownRun, several: boolean, series: string, label: string, unit: string,
        style: CurveStyle, smooth = true): Curve | undefined {
    const found = run.state.series.get(series);
    if (!found || found.length === 0) return undefined;
    // Not over more than a part of what there is, which would only hide how it began.
    const points = smooth ? Math.min(preference("smoothing") / found.width, found.length / 8) : 1;
    const curve: Curve = {
      label: several ? `${run.label} ${label}` : label,
      unit, ...style,
      x: this.place(run, found.x),
      y: points > 1 ? smoothed(found.mean, points) : found.mean,
    };
    if (found.width > 1) {
      curve.low = found.low;
      curve.high = found.high;
    } else if (points > 1) {
      curve.raw = found.mean;
    }
    return curve;
  }
}

// Grows with every change of the data of these runs' curves.
export function historyKey(runs: readonly ShownRun[]): string {
  return runs.map((run) => {
    const c = run.state.changes;
    return `${run.listed.id}:${run.label}:${c.series}:${c.marks}:${c.run}:` +
      `${preference("axis") === "time" ? c.progress : 0}`;
  }).join(",") + `/${preference("axis")}/${preference("smoothing")}/${preference("logScale")}`;
}
