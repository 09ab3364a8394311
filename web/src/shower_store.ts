// Profiles and single showers of the chosen runs, at the chosen step.

import type { ShownRun } from "./panel.ts";
import type { Showers } from "./protocol.ts";

const KEPT = 8;

type Entry = Showers | "loading" | { error: string };

export class ShowerStore {
  // null: the newest there is.
  step: number | null = null;
  version = 0;
  private kept = new Map<string, Entry>();

  constructor(private readonly changed: () => void) {}

  choose(step: number | null): void {
    this.step = step;
    ++this.version;
    this.changed();
  }

  // The step looked at of this run: the chosen one, or the nearest that it has.
  stepOf(run: ShownRun): number | undefined {
    const steps = run.state.showers;
    if (this.step === null || steps.length === 0) return steps[steps.length - 1];
    return steps.reduce((best, s) => Math.abs(s - this.step!) < Math.abs(best - this.step!) ? s : best);
  }

  // Fetches what is not there yet and tells when it is.
  get(run: ShownRun): Entry | undefined {
    const step = this.stepOf(run);
    if (step === undefined) return undefined;
    const key = `${run.listed.id}/${run.state.wholes}/${step}`;
    const found = this.kept.get(key);
    if (found) return found;
    this.keep(key, "loading");
    void this.fetch(run.listed.id, step).then((entry) => {
      if (this.kept.has(key)) this.kept.set(key, entry);
      ++this.version;
      this.changed();
      // Tried again when somebody looks a while later.
      if ("error" in entry) window.setTimeout(() => this.kept.delete(key), 5000);
    });
    return "loading";
  }

  private keep(key: string, entry: Entry): void {
    this.kept.set(key, entry);
    for (const old of this.kept.keys()) {
      if (this.kept.size <= KEPT) break;
      this.kept.delete(old);
    }
  }

  private async fetch(id: number, step: number): Promise<Showers | { error: string }> {
    try {
      const response = await fetch(`/api/runs/${id}/showers/${step}`);
      const told = (await response.json()) as Showers & { error?: string };
      return response.ok ? told : { error: told.error ?? `the server said ${response.status}` };
    } catch {
      return { error: "the server cannot be reached" };
    }
  }
}

export function isShowers(entry: Entry | undefined): entry is Showers {
  return typeof entry === "object" && "space" in entry;
}

export function entryText(entry: Entry | undefined): string {
  if (entry === undefined) return "No showers yet: they come with the validations.";
  if (entry === "loading") return "Loading showers.";
  return "error" in entry ? `No showers: ${entry.error}.` : "";
}
