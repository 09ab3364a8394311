// The event display: a shower of the data beside the one generated for the same conditions.

import { button, choice, make, setAttribute, setOptions, setText } from "./elements.ts";
import { count, figure } from "./format.ts";
import { heatCss } from "./palette.ts";
import { Fingerprint, type Panel, section, type ShownRun } from "./panel.ts";
import type { Shower, ShowerEvent, Showers } from "./protocol.ts";
import { ShowerTable } from "./shower_table.ts";
import type { ShowerScene } from "./shower_scene.ts";
import { entryText, isShowers, type ShowerStore } from "./shower_store.ts";
import { StepChoice } from "./step_choice.ts";

const TURN = 0.12;

export class ShowerPanel implements Panel {
  readonly element: HTMLElement;
  private steps: StepChoice;
  private runSelect: HTMLSelectElement;
  private runChoice: HTMLElement;
  private eventSelect: HTMLSelectElement;
  private run = "";
  private event = 0;
  private note = make("p", { class: "note" });
  private titles: [HTMLElement, HTMLElement] = [make("p", {}), make("p", {})];
  private canvas = make("canvas", { "aria-hidden": true });
  private stage: HTMLElement;
  private legend = make("div", { class: "heat", role: "img" });
  private display = make("div", { class: "display" });
  private words = make("p", { class: "for-readers", id: "shower-words" });
  private table = new ShowerTable();
  private unseen = make("p", { class: "unseen" }, "They are drawn in space when this comes into sight.");
  private fallback = make("p", { class: "note", hidden: true }, "This browser shows no WebGL, so " +
    "the showers cannot be drawn in space; the table below lists their brightest cells.");
  private scene: ShowerScene | undefined;
  private loading = false;
  private seen = new Fingerprint();
  private last: readonly ShownRun[] = [];

  constructor(private readonly store: ShowerStore) {
    this.steps = new StepChoice(store);
    const run = choice("Run", [], "", (value) => this.again(() => (this.run = value)));
    const event = choice("Event", [], "", (value) => this.again(() => (this.event = Number(value))));
    [this.runSelect, this.runChoice, this.eventSelect] = [run.select, run.element, event.select];
    this.stage = make("div", { class: "stage", tabindex: 0, role: "group",
      "aria-label": "Showers in space. Arrow keys turn them, plus and minus come nearer and go " +
      "away, 0 turns back.", "aria-describedby": "shower-words",
      onkeydown: (e: KeyboardEvent) => this.key(e) }, this.canvas, make("span", { class: "parting" }), ...this.titles,
      this.unseen);
    this.display.append(this.stage, this.legend);
    this.element = section("showers", "Showers", make("div", { class: "tools", role: "group", "aria-label": "Showers" },
      this.runChoice, this.steps.element, event.element,
      make("span", { class: "buttons" },
        button("−", () => this.scene?.approach(1.25), { "aria-label": "Further away" }),
        button("+", () => this.scene?.approach(0.8), { "aria-label": "Nearer" }),
        button("Turn back", () => this.scene?.home()))),
      this.note, this.fallback,
      this.display, this.words, this.table.element);
    this.display.hidden = this.table.element.hidden = true;
    this.canvas.addEventListener("pointerdown", (e) => this.drag(e));
    new ResizeObserver(() => this.scene?.later()).observe(this.canvas);
  }

  show(runs: readonly ShownRun[], inSight: boolean): void {
    this.last = runs;
    this.steps.show(runs);
    setOptions(this.runSelect, runs.map((r) => [String(r.listed.id), r.label]), this.run);
    this.runChoice.hidden = runs.length < 2;
    const run = runs.find((r) => String(r.listed.id) === this.run) ?? runs[0];
    if (!run) return;
    this.run = String(run.listed.id);
    this.runSelect.value = this.run;
    const entry = this.store.get(run);
    const draws = inSight || this.scene !== undefined;
    if (!this.seen.changed(this.run, this.event, this.store.version, this.store.stepOf(run), draws)) return;
    setText(this.note, entryText(entry));
    const some = isShowers(entry) && entry.events.length > 0;
    if (entry === "loading") return;  // what was shown stays until then
    this.display.hidden = !some || !this.fallback.hidden;
    this.table.element.hidden = !some;
    if (some) this.paint(entry, draws);
    else if (isShowers(entry)) setText(this.note, "No single showers of this step.");
  }

  private again(change: () => void): void {
    change();
    this.seen.forget();
    this.show(this.last, true);
  }

  private paint(showers: Showers, draws: boolean): void {
    setOptions(this.eventSelect, showers.events.map((e, i) => [String(i), eventText(e, i)]),
      String(this.event));
    this.event = Math.min(this.event, showers.events.length - 1);
    this.eventSelect.value = String(this.event);
    const event = showers.events[this.event]!;
    const high = Math.max(...event.data.gev, ...event.generated.gev, 1e-6);
    const low = Math.max(high * 1e-4, Math.min(...event.data.gev.filter((v) => v > 0), high / 10));
    for (const [i, name, shower] of [[0, "Data", event.data], [1, "Generated", event.generated]] as const) {
      setText(this.titles[i], `${name}, ${figure(shower.total)} GeV in ${count(shower.cells.length)} cells`);
    }
    setText(this.words, `State before step ${count(showers.step)}, ${eventText(event, this.event)}. ` +
      `Data: ${told(event.data)}. Generated: ${told(event.generated)}.`);
    this.table.show(event, showers.space);
    this.fillLegend(low, high);
    if (!draws) return;
    void this.load().then(() => this.scene?.show({ space: showers.space, data: event.data,
      generated: event.generated, low, high }));
  }

  private async load(): Promise<void> {
    if (this.scene || this.loading) return;
    this.loading = true;
    try {
      const { ShowerScene: Loaded } = await import("./shower_scene.ts");
      this.scene = new Loaded(this.canvas);
      this.unseen.hidden = true;
    } catch {
      this.fallback.hidden = false;
      this.display.hidden = true;
    }
    this.seen.forget();
    this.loading = false;
  }

  private fillLegend(low: number, high: number): void {
    const ticks = [0, 0.25, 0.5, 0.75, 1];
    const gev = (share: number) => figure(low * Math.pow(high / low, share), 2);
    setAttribute(this.legend, "aria-label", `Colour and size tell energy, from ${gev(0)} to ${gev(1)} GeV`);
    this.legend.replaceChildren(make("span", {}, "GeV per cell"), ...ticks.map((share) => {
      const cube = make("i", {});
      cube.style.background = heatCss(share);
      cube.style.width = cube.style.height = `${5 + 13 * share}px`;
      return make("span", { class: "key" }, cube, gev(share));
    }));
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.scene) return;
    const turns: Record<string, [number, number]> = {
      ArrowLeft: [-TURN, 0], ArrowRight: [TURN, 0], ArrowUp: [0, TURN], ArrowDown: [0, -TURN],
    };
    const turn = turns[event.key];
    if (turn) this.scene.turn(...turn);
    else if (event.key === "+" || event.key === "=") this.scene.approach(0.8);
    else if (event.key === "-") this.scene.approach(1.25);
    else if (event.key === "0") this.scene.home();
    else return;
    event.preventDefault();
  }

  // One finger or the mouse turns; across a phone the page still scrolls up and down.
  private drag(down: PointerEvent): void {
    let [x, y] = [down.clientX, down.clientY];
    this.canvas.setPointerCapture(down.pointerId);
    const move = (e: PointerEvent) => {
      if (e.pointerId !== down.pointerId) return;
      this.scene?.turn((x - e.clientX) * 0.01, (e.clientY - y) * 0.01);
      [x, y] = [e.clientX, e.clientY];
    };
    const end = () => {
      this.canvas.removeEventListener("pointermove", move);
    };
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", end, { once: true });
    this.canvas.addEventListener("pointercancel", end, { once: true });
  }
}

function eventText(event: ShowerEvent, index: number): string {
  const angle = event.angle === null ? "" : `, ${figure((event.angle * 180) / Math.PI)}°`;
  return `${index + 1}: ${figure(event.energy)} GeV${angle}`;
}

function told(shower: Shower): string {
  return `${figure(shower.total)} GeV in ${shower.cells.length} cells shown, ` +
    `the brightest with ${figure(shower.gev[0] ?? 0)} GeV`;
}
