// A part of the page, and the runs it shows.

import type { Connection } from "./connection.ts";
import { make } from "./elements.ts";
import type { ListedRun } from "./protocol.ts";
import type { RunState } from "./run_state.ts";

// A chosen run, in the order of choice.
export interface ShownRun {
  listed: ListedRun;
  label: string;
  state: RunState;
  connection: Connection;
}

export interface Panel {
  readonly element: HTMLElement;
  // Called when anything has changed: a few times a second at most while the panel is in sight, now
  // and then while it is not, and before the page is printed.
  show(runs: readonly ShownRun[], inSight: boolean): void;
  // Colours have changed.
  repaint?(): void;
}

// `tools` stand beside the title.
export function section(id: string, title: string, tools: HTMLElement | undefined,
                        ...content: HTMLElement[]): HTMLElement {
  return make("section", { class: `panel ${id}`, id, "aria-labelledby": `${id}-title` },
    make("div", { class: "head" }, make("h2", { id: `${id}-title` }, title), tools), ...content);
}

// Tells whether the data of a panel have changed since it last asked.
export class Fingerprint {
  private last = "";

  changed(...parts: unknown[]): boolean {
    const now = parts.join("|");
    if (now === this.last) return false;
    this.last = now;
    return true;
  }

  forget(): void {
    this.last = "";
  }
}
