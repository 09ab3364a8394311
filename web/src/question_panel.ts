// Questions to a live run: which actors wait for which, and every actor's recent work.

import { answerOf } from "./answer.ts";
import { button, make, setText } from "./elements.ts";
import { timeOfDay } from "./format.ts";
import { Fingerprint, type Panel, section, type ShownRun } from "./panel.ts";

export class QuestionPanel implements Panel {
  readonly element: HTMLElement;
  private rows = make("div", {});
  private seen = new Fingerprint();

  constructor() {
    this.element = section("questions", "Ask the run", undefined, this.rows);
  }

  show(runs: readonly ShownRun[]): void {
    const key = runs.map((r) => `${r.listed.id}${r.label}${r.listed.live && !r.state.finished}`);
    if (!this.seen.changed(...key)) return;
    this.rows.replaceChildren(...runs.map((run) => this.row(run, runs.length > 1)));
  }

  private row(run: ShownRun, several: boolean): HTMLElement {
    const name = several ? ` ${run.label}` : "";
    if (!run.listed.live || run.state.finished) {
      return make("p", { class: "note" }, `${several ? run.label : "The run"} is over and can no longer be asked.`);
    }
    const answer = make("pre", { class: "waits", tabindex: 0, role: "region", hidden: true,
      "aria-label": `What waits for what${name}` });
    const status = make("span", { class: "note", role: "status" });
    const ask = button(`What waits for what${several ? `: ${run.label}` : ""}`, () => {
      void this.ask(run, ask, answer, status);
    });
    return make("div", { class: "question" }, make("div", { class: "tools" }, ask,
      make("a", { class: "button", href: `/api/runs/${run.listed.id}/trace`,
        download: `${run.listed.name || "run"}-trace.json` }, `Download trace${name}`), status), answer);
  }

  private async ask(run: ShownRun, ask: HTMLButtonElement, answer: HTMLElement, status: HTMLElement):
      Promise<void> {
    ask.disabled = true;
    setText(status, "asking");
    try {
      setText(answer, await answerOf(`/api/runs/${run.listed.id}/waits`) || "Nobody waits.");
      answer.hidden = false;
      setText(status, `as of ${timeOfDay(Date.now() / 1000)}`);
    } catch (error) {
      setText(status, `no answer: ${error instanceof Error ? error.message : "nothing was said"}`);
    }
    ask.disabled = false;
  }
}
