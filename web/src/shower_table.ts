// The brightest cells of a shower and of its generated twin, in figures.

import { make } from "./elements.ts";
import { figure } from "./format.ts";
import type { Shower, ShowerEvent } from "./protocol.ts";

const ROWS = 15;

export class ShowerTable {
  readonly element: HTMLDetailsElement;
  private table = make("table", {});
  private now: [ShowerEvent, [number, number, number]] | undefined;

  constructor() {
    this.element = make("details", { class: "data-table", ontoggle: () => this.fill() },
      make("summary", { "aria-label": "Table: brightest cells" }, "Table"),
      make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Brightest cells" },
        this.table));
  }

  show(event: ShowerEvent, space: [number, number, number]): void {
    this.now = [event, space];
    this.fill();
  }

  private fill(): void {
    if (!this.now || !this.element.open) return;
    const [event, space] = this.now;
    const rows = Array.from({ length: ROWS }, (_, i) => make("tr", {},
      make("th", { scope: "row" }, String(i + 1)),
      ...cells(event.data, i, space), ...cells(event.generated, i, space)));
    const heads = ["Rank", "Data: cell", "GeV", "Generated: cell", "GeV"];
    this.table.replaceChildren(
      make("thead", {}, make("tr", {}, ...heads.map((h) => make("th", { scope: "col" }, h)))),
      make("tbody", {}, ...rows));
  }
}

function cells(shower: Shower, i: number, [, y, z]: [number, number, number]): HTMLElement[] {
  const cell = shower.cells[i];
  if (cell === undefined) return [make("td", {}, "–"), make("td", {}, "–")];
  const rest = Math.floor(cell / z);
  return [make("td", {}, `${Math.floor(rest / y)}, ${rest % y}, ${cell % z}`),
    make("td", {}, figure(shower.gev[i]))];
}
