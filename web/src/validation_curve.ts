// A number that validations tell, as a curve over epochs.

import type { Curve } from "./curve.ts";
import type { CurveStyle } from "./palette.ts";
import type { ShownRun } from "./panel.ts";
import type { Validation } from "./protocol.ts";

export function validationCurve(
  { state }: ShownRun, label: string, unit: string, style: CurveStyle,
  value: (one: Validation) => number | undefined,
): Curve {
  const facts = state.run;
  const steps = Math.max(1, (facts?.iterations_per_epoch ?? 1) * (facts?.schedule.length || 1));
  const result: Curve = { label, unit, ...style, x: [], y: [] };
  for (const one of state.validations) {
    const found = value(one);
    const x = one.step / steps;
    if (found === undefined || !Number.isFinite(found)) continue;
    if (result.x.length > 0 && x <= result.x[result.x.length - 1]!) continue;
    result.x.push(x);
    result.y.push(found);
  }
  return result;
}
