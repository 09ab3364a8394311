// Every actor of every node: what it does and how much it has done; sortable, by node.

import { button, choice, make, setOptions, setText } from "./elements.ts";
import { count } from "./format.ts";
import { Fingerprint, type Panel, section, type ShownRun } from "./panel.ts";
import type { Link } from "./protocol.ts";

interface Row {
  run: string;
  node: string;
  actor: string;
  state: string;
  handled: number;
  queued: number;
  out: string;
  full: number;
  dropped: number;
}

type Key = keyof Row;
const COLUMNS: [Key, string, boolean][] = [
  ["run", "Run", false], ["node", "Node", false], ["actor", "Actor", false],
  ["state", "State", false], ["handled", "Handled", true], ["queued", "Queued", true],
  ["full", "Credits out", true], ["dropped", "Dropped", true],
];
const MOST = 500;

export class ActorPanel implements Panel {
  readonly element: HTMLElement;
  private sort: Key = "node";
  private down = false;
  private node = "";
  private select: HTMLSelectElement;
  private heads = new Map<Key, HTMLTableCellElement>();
  private body = make("tbody", {});
  private note = make("p", { class: "note" });
  private seen = new Fingerprint();
  private last: readonly ShownRun[] = [];

  constructor() {
    const filter = choice("Node", [["", "all"]], "", (value) => {
      this.node = value;
      this.again();
    });
    this.select = filter.select;
    for (const [key, title, number] of COLUMNS) {
      this.heads.set(key, make("th", { scope: "col", class: number ? "number" : "" },
        button(title, () => this.sortBy(key))));
    }
    this.element = section("actors", "Actors", make("div", { class: "tools" }, filter.element),
      make("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Table of actors" },
        make("table", {}, make("thead", {}, make("tr", {}, ...this.heads.values())), this.body)),
      this.note);
  }

  show(runs: readonly ShownRun[]): void {
    this.last = runs;
    if (!this.seen.changed(...runs.map((r) => `${r.listed.id}${r.label}:${r.state.changes.nodes}`))) return;
    const names = [...new Set(runs.flatMap((run) => run.state.nodes.map((node) => node.name)))];
    if (!names.includes(this.node)) this.node = "";
    setOptions(this.select, [["", "all"], ...names.map((n): [string, string] => [n, n])], this.node);
    const rows = rowsOf(runs).filter((row) => this.node === "" || row.node === this.node);
    const sign = this.down ? -1 : 1;
    rows.sort((a, b) => {
      const [x, y] = [a[this.sort], b[this.sort]];
      const order = typeof x === "number" && typeof y === "number" ? x - y
        : natural.compare(String(x), String(y));
      return sign * order || natural.compare(a.actor, b.actor);
    });
    for (const [key, head] of this.heads) {
      head.hidden = key === "run" && runs.length < 2;
      if (key === this.sort) head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    this.fill(rows.slice(0, MOST), runs.length > 1);
    setText(this.note, rows.length > MOST ? `${rows.length - MOST} further ones: choose a node.`
      : rows.length === 0 ? "No actors: they are told while a run is live." : "");
  }

  private sortBy(key: Key): void {
    this.down = this.sort === key ? !this.down : key === "handled" || key === "queued" || key === "full";
    this.sort = key;
    this.again();
  }

  private again(): void {
    this.seen.forget();
    this.show(this.last);
  }

  private fill(rows: Row[], several: boolean): void {
    while (this.body.rows.length > rows.length) this.body.deleteRow(-1);
    rows.forEach((row, i) => {
      const line = this.body.rows[i] ?? this.body.insertRow();
      while (line.cells.length < COLUMNS.length) line.insertCell();
      COLUMNS.forEach(([key, , number], c) => {
        const cell = line.cells[c]!;
        cell.className = number ? "number" : "";
        if (key === "run") cell.hidden = !several;
        const value = row[key];
        setText(cell, key === "full" ? row.out : typeof value === "number" ? count(value) : value);
      });
      line.dataset["state"] = row.state;
    });
  }
}

const natural = new Intl.Collator("en", { numeric: true });

function rowsOf(runs: readonly ShownRun[]): Row[] {
  return runs.flatMap((run) => {
    const links = run.state.nodes.flatMap((node) => node.links);
    const into = grouped(links, (link) => link.to);
    const outOf = grouped(links, (link) => link.from);
    return run.state.nodes.flatMap((node) => node.actors.map((actor): Row => {
      const sends = (outOf.get(actor.name) ?? []).filter((link) => link.credits > 0);
      const used = sum(sends, (link) => link.in_use);
      const room = sum(sends, (link) => link.credits);
      return {
        run: run.label, node: node.name, actor: actor.name,
        state: node.state === "dead" ? "dead" : actor.state, handled: actor.handled,
        queued: sum(into.get(actor.name) ?? [], (link) => link.queued),
        out: room > 0 ? `${used} of ${room}` : "–", full: room > 0 ? used / room : -1,
        dropped: sum(outOf.get(actor.name) ?? [], (link) => link.dropped),
      };
    }));
  });
}

function grouped(links: Link[], key: (link: Link) => string): Map<string, Link[]> {
  const result = new Map<string, Link[]>();
  for (const link of links) {
    const found = result.get(key(link));
    if (found) found.push(link);
    else result.set(key(link), [link]);
  }
  return result;
}

function sum<T>(items: readonly T[], value: (item: T) => number): number {
  return items.reduce((total, item) => total + value(item), 0);
}
