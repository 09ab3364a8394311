// Names and the numbers that belong to them, as they change.

import { make, setText } from "./elements.ts";

export class Figures {
  readonly element: HTMLElement;
  private values = new Map<string, { box: HTMLElement; value: HTMLElement }>();

  constructor(label: string) {
    this.element = make("dl", { "aria-label": label });
  }

  // In the order in which they are first set. undefined: it is not shown.
  set(name: string, text: string | undefined, warn = false): void {
    let entry = this.values.get(name);
    if (!entry) {
      const value = make("dd", {});
      entry = { box: make("div", {}, make("dt", {}, name), value), value };
      this.values.set(name, entry);
      this.element.append(entry.box);
    }
    entry.box.hidden = text === undefined;
    entry.box.classList.toggle("warn", warn);
    setText(entry.value, text ?? "");
  }
}
