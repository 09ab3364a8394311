// The page: fetches the list of runs, follows the chosen ones over one stream, and lets the panels
// show their state.

import { ActorPanel } from "./actor_panel.ts";
import { Announcer } from "./announcer.ts";
import { Connection, Feed } from "./connection.ts";
import { make, setText } from "./elements.ts";
import { GraphPanel } from "./graph_panel.ts";
import { LogPanel } from "./log_panel.ts";
import { LossPanel } from "./loss_panel.ts";
import { MarkPanel } from "./mark_panel.ts";
import { MeritPanel } from "./merit_panel.ts";
import { PacePanel } from "./pace_panel.ts";
import { isPrinted, onPaper } from "./paper.ts";
import type { Panel, ShownRun } from "./panel.ts";
import { PhysicsPanel } from "./physics_panel.ts";
import { onPreference } from "./preferences.ts";
import type { ListedRun, RunList } from "./protocol.ts";
import { QuestionPanel } from "./question_panel.ts";
import { labelsOf, MOST_RUNS, RunChoice, runsToFollow } from "./run_choice.ts";
import { RunHeader } from "./run_header.ts";
import { RunState } from "./run_state.ts";
import { ShowerPanel } from "./shower_panel.ts";
import { ShowerStore } from "./shower_store.ts";
import { onTheme, startTheme, themeChoice } from "./theme.ts";
import { Zoom } from "./zoom.ts";

// Drawing more often would tell an eye nothing and cost a phone its battery.
const DRAW_MS = 400;
// Panels out of sight are drawn this seldom. So they are there at once when someone scrolls to
// them, and in a picture of the whole page.
const UNSEEN_MS = 5000;
const LIST_MS = 5000;

class Page {
  private runs: ShownRun[] = [];
  private listed: ListedRun[] = [];
  private chosen: number[] = idsOfAddress();  // empty: those that are live
  private followed: number[] = [];
  private feed = new Feed(() => this.later());
  private headers: RunHeader[] = [];
  private headerBox = make("div", { class: "run-headers" });
  private notice = make("p", { class: "notice", role: "status" }, "Connecting.");
  private announcer = new Announcer();
  private choice = new RunChoice((ids) => this.choose(ids));
  private panels: Panel[];
  private visible = new Set<Element>();
  private waiting = false;
  private drawn = 0;
  private unseenDrawn = { at: 0, what: "" };

  constructor(private readonly version: HTMLElement) {
    const zoom = new Zoom();
    const store = new ShowerStore(() => {
      this.unseenDrawn.what = "";
      this.later();
    });
    this.panels = [new MeritPanel(), new LossPanel(zoom), new PhysicsPanel(store), new ShowerPanel(store),
      new PacePanel(zoom), new GraphPanel(), new MarkPanel(), new LogPanel(), new ActorPanel(),
      new QuestionPanel()];
  }

  start(top: HTMLElement, main: HTMLElement): void {
    top.append(this.choice.element, this.headerBox, this.notice, this.announcer.element);
    main.append(...this.panels.map((panel) => panel.element));
    const watch = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) this.visible.add(entry.target);
        else this.visible.delete(entry.target);
      }
      this.later();
    }, { rootMargin: "300px" });
    for (const panel of this.panels) watch.observe(panel.element);
    onPreference(() => this.later());
    onPaper(() => this.draw());
    onTheme(() => this.panels.forEach((panel) => panel.repaint?.()));
    window.addEventListener("hashchange", () => {
      if (location.hash.startsWith("#runs=")) this.choose(idsOfAddress());
    });
    void this.list();
  }

  private async list(): Promise<void> {
    try {
      const response = await fetch("/api/runs");
      if (!response.ok) {
        this.tell(`The server says ${response.status}: ${(await response.text()).trim()}`);
        return;
      }
      const told = (await response.json()) as RunList;
      this.listed = told.runs;
      setText(this.version, `Troupe ${told.version}`);
      this.choose(this.chosen);
    } catch {
      if (this.runs.length === 0) this.tell("The server cannot be reached. Trying again.");
    } finally {
      window.setTimeout(() => void this.list(), this.runs.length === 0 ? 2000 : LIST_MS);
    }
  }

  private choose(ids: number[]): void {
    this.chosen = ids;
    const known = ids.filter((id) => this.listed.some((run) => run.id === id)).slice(0, MOST_RUNS);
    this.followed = runsToFollow(this.listed, this.followed);
    const newest = this.listed.slice(-1).map((run) => run.id);
    const shown = [known, this.followed, newest].find((some) => some.length > 0) ?? [];
    const labels = labelsOf(this.listed);
    this.runs = shown.map((id) => {
      const listed = this.listed.find((run) => run.id === id)!;
      const label = labels.get(id) ?? listed.name;
      const found = this.runs.find((run) => run.listed.id === id);
      if (found) return { ...found, listed, label };
      const state = new RunState();
      return { listed, label, state, connection: new Connection(id, state) };
    });
    this.feed.follow(this.runs.map((run) => run.connection));
    // The address holds only a choice that was made: without one it stands for the runs that are
    // live when it is opened.
    const hash = known.length > 0 ? `#runs=${known.join(",")}` : "";
    if (this.listed.length > 1 && location.hash !== hash) {
      history.replaceState(null, "", location.pathname + location.search + hash);
    }
    this.tell(this.listed.length === 0 ? "There is no run to look at yet." : "");
    this.later();
  }

  private tell(text: string): void {
    setText(this.notice, text);
    this.notice.hidden = text === "";
  }

  private later(): void {
    if (this.waiting) return;
    this.waiting = true;
    const wait = Math.max(0, this.drawn + DRAW_MS - performance.now());
    // A page that nobody sees gets no frames, and so draws nothing.
    window.setTimeout(() => requestAnimationFrame(() => this.draw()), wait);
  }

  // The news of a followed run come sooner than the list.
  private isLive(listed: ListedRun): boolean {
    const state = this.runs.find((run) => run.listed.id === listed.id)?.state;
    return state?.progress ? !state.finished : listed.live;
  }

  private draw(): void {
    this.waiting = false;
    while (this.headers.length > this.runs.length) this.headers.pop()!.element.remove();
    this.runs.forEach((run, i) => {
      let header = this.headers[i];
      if (!header) {
        this.headers.push((header = new RunHeader()));
        this.headerBox.append(header.element);
      }
      header.show(run, this.runs.length > 1);
    });
    this.choice.show(this.listed.map((run) => ({ ...run, live: this.isLive(run) })),
      labelsOf(this.listed), this.runs.map((run) => run.listed.id));
    this.announcer.look(this.runs);
    const first = this.runs[0];
    const state = first?.state.progress?.state;
    document.title = first ? `${first.label}${state ? `, ${state}` : ""} – Troupe` : "Troupe";
    const shown = this.runs.filter((run) => run.state.version >= 0);
    document.body.dataset["ready"] = String(shown.length > 0);
    this.drawn = performance.now();
    const what = shown.map((run) => `${run.listed.id}:${run.state.wholes}`).join();
    const all = shown.length > 0 && (isPrinted() || what !== this.unseenDrawn.what ||
      this.drawn - this.unseenDrawn.at > UNSEEN_MS);
    if (all) this.unseenDrawn = { at: this.drawn, what };
    for (const panel of this.panels) {
      const inSight = isPrinted() || this.visible.has(panel.element);
      if (all || inSight) panel.show(shown, inSight);
    }
  }
}

function idsOfAddress(): number[] {
  const found = /runs=([\d,]+)/.exec(location.hash)?.[1] ?? "";
  return [...new Set(found.split(",").filter(Boolean).map(Number))];
}

// The part of the address behind # tells the runs, so it does not change with the place.
function startPlaces(): void {
  for (const link of document.querySelectorAll<HTMLAnchorElement>("a[href^='#']")) {
    link.addEventListener("click", (event) => {
      const place = document.getElementById(link.hash.slice(1));
      if (!place) return;
      event.preventDefault();
      place.tabIndex = -1;
      place.focus({ preventScroll: true });
      place.scrollIntoView();
    });
  }
}

startTheme();
startPlaces();
document.getElementById("settings")!.append(themeChoice());
new Page(document.getElementById("version")!).start(
  document.getElementById("top")!, document.getElementById("main")!);
