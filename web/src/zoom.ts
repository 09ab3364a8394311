// The stretch of the run that all curves show.

export type Range = [number, number];

export class Zoom {
  // In units of the axis (steps, or seconds since 1970); null: all there is.
  range: Range | null = null;
  private listeners = new Set<() => void>();

  onChange(listener: () => void): void {
    this.listeners.add(listener);
  }

  set(range: Range | null): void {
    if (range && !(range[1] > range[0])) return;
    if (range === null && this.range === null) return;
    this.range = range;
    for (const listener of this.listeners) listener();
  }

  // `factor` below 1 shows less; around the middle, or `centre`.
  scale(factor: number, all: Range, centre?: number): void {
    const [low, high] = this.range ?? all;
    const middle = centre ?? (low + high) / 2;
    const next: Range = [
      Math.max(all[0], middle - (middle - low) * factor),
      Math.min(all[1], middle + (high - middle) * factor),
    ];
    this.set(next[0] <= all[0] && next[1] >= all[1] ? null : next);
  }

  // Moves by a fraction of the shown stretch, not beyond the run.
  pan(fraction: number, all: Range): void {
    if (!this.range) return;
    const [low, high] = this.range;
    const by = Math.min(all[1] - high, Math.max(all[0] - low, (high - low) * fraction));
    this.set([low + by, high + by]);
  }
}
