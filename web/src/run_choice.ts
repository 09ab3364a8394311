// The choice of runs. Several runs are compared: their curves lie over each other.

import { make } from "./elements.ts";
import { DASHES, SERIES_COLOURS } from "./palette.ts";
import type { ListedRun } from "./protocol.ts";

// More would be told apart neither by colour nor by dashes.
export const MOST_RUNS = Math.min(DASHES.length, SERIES_COLOURS);

// The runs to follow without a choice: all live ones, and those that have ended since, until others
// need their place. `before`: what this gave last.
export function runsToFollow(listed: readonly ListedRun[], before: readonly number[]): number[] {
  const live = listed.filter((run) => run.live).map((run) => run.id);
  const all = [...before, ...live.filter((id) => !before.includes(id))]
    .filter((id) => listed.some((run) => run.id === id));
  let ended = Math.max(0, MOST_RUNS - live.length);
  return all.filter((id) => live.includes(id) || ended-- > 0).slice(0, MOST_RUNS);
}

export class RunChoice {
  readonly element: HTMLElement;
  private list = make("div", { class: "choices" });

  constructor(private readonly chosen: (ids: number[]) => void) {
    this.element = make("div", { class: "runs", role: "group", hidden: true, "aria-label": "Runs" },
      make("span", { class: "note" }, `Runs, up to ${MOST_RUNS} at once`), this.list);
  }

  show(runs: readonly ListedRun[], labels: Map<number, string>, ids: readonly number[]): void {
    this.element.hidden = runs.length < 2;
    const key = JSON.stringify([runs, ids]);
    if (this.list.dataset["key"] === key) return;
    const focused = (document.activeElement as HTMLInputElement | null)?.value;
    this.list.dataset["key"] = key;
    this.list.replaceChildren(...runs.map((run) => {
      const input = make("input", { type: "checkbox", value: run.id, onchange: () => this.changed() });
      input.checked = ids.includes(run.id);
      input.disabled = !input.checked && ids.length >= MOST_RUNS;
      return make("label", { class: "toggle" }, input, make("span", {}, labels.get(run.id) ?? run.name),
        make("span", { class: "note" }, run.live ? "live" : "finished"));
    }));
    if (focused !== undefined) {
      this.list.querySelector<HTMLInputElement>(`input[value="${CSS.escape(focused)}"]`)?.focus();
    }
  }

  private changed(): void {
    const boxes = [...this.list.querySelectorAll("input")];
    this.chosen(boxes.filter((box) => box.checked).map((box) => Number(box.value)));
  }
}

// Names that tell the runs apart: by folder where names are the same.
export function labelsOf(runs: readonly ListedRun[]): Map<number, string> {
  return new Map(runs.map((run) => {
    const alone = runs.filter((other) => other.name === run.name).length === 1;
    const folder = run.folder.split("/").filter(Boolean).pop();
    return [run.id, alone && run.name ? run.name : folder ?? `run ${run.id}`];
  }));
}
