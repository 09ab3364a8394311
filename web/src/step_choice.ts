// The step whose showers are shown: the newest as they come, or a chosen one.

import { button, choice, make, setOptions } from "./elements.ts";
import { count } from "./format.ts";
import type { ShownRun } from "./panel.ts";
import type { ShowerStore } from "./shower_store.ts";

const NEWEST = "newest";

export class StepChoice {
  readonly element: HTMLElement;
  private select: HTMLSelectElement;
  private steps: number[] = [];

  constructor(private readonly store: ShowerStore) {
    const made = choice("State before", [[NEWEST, "newest"]], NEWEST, (value) =>
      store.choose(value === NEWEST ? null : Number(value)));
    this.select = made.select;
    this.element = make("span", { class: "buttons" }, made.element,
      button("‹", () => this.move(-1), { "aria-label": "Earlier step" }),
      button("›", () => this.move(1), { "aria-label": "Later step" }));
  }

  show(runs: readonly ShownRun[]): void {
    const facts = runs[0]?.state.run;
    const perEpoch = (facts?.iterations_per_epoch ?? 0) * (facts?.schedule.length ?? 0);
    this.steps = [...new Set(runs.flatMap((run) => run.state.showers))].sort((a, b) => a - b);
    const text = (step: number) => perEpoch > 0 && step % perEpoch === 0
      ? `step ${count(step)}, epoch ${step / perEpoch}` : `step ${count(step)}`;
    setOptions(this.select, [[NEWEST, "newest"],
      ...[...this.steps].reverse().map((s): [string, string] => [String(s), text(s)])],
      this.store.step === null ? NEWEST : String(this.store.step));
  }

  private move(by: number): void {
    if (this.steps.length === 0) return;
    const last = this.steps.length - 1;
    const at = this.store.step === null ? last : this.steps.indexOf(this.store.step);
    const next = Math.max(0, at + by);
    this.store.choose(next >= last && by > 0 ? null : this.steps[Math.min(last, next)]!);
  }
}
