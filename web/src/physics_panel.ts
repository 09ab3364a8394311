// Shower profiles and histograms, data against generated, and what the validations say of them.

import { ComparisonPlot, type ComparisonContent } from "./comparison_plot.ts";
import { make, setText, toggle } from "./elements.ts";
import { ErrorFigures } from "./error_figures.ts";
import { count } from "./format.ts";
import { SERIES_COLOURS } from "./palette.ts";
import { Fingerprint, type Panel, section, type ShownRun } from "./panel.ts";
import type { Showers } from "./protocol.ts";
import { entryText, isShowers, type ShowerStore } from "./shower_store.ts";
import { StepChoice } from "./step_choice.ts";

interface Found {
  run: ShownRun;
  showers: Showers;
}

export class PhysicsPanel implements Panel {
  readonly element: HTMLElement;
  private steps: StepChoice;
  private note = make("p", { class: "note" });
  private legend = make("ul", { class: "legend" });
  private grid = make("div", { class: "charts small" });
  private plots: ComparisonPlot[] = [];
  private errors = new ErrorFigures();
  private log = false;
  private seen = new Fingerprint();
  private last: readonly ShownRun[] = [];

  constructor(private readonly store: ShowerStore) {
    this.steps = new StepChoice(store);
    const log = toggle("Logarithmic", false, (on) => {
      this.log = on;
      this.show(this.last);
    });
    this.element = section("physics", "Physics",
      make("div", { class: "tools", role: "group", "aria-label": "Profiles" }, this.steps.element,
        log.element),
      make("div", { class: "captions" }, this.legend, this.note), this.grid, this.errors.element);
  }

  show(runs: readonly ShownRun[]): void {
    this.last = runs;
    this.steps.show(runs);
    this.errors.show(runs);
    const entries = runs.map((run) => this.store.get(run));
    const key = runs.map((r) => `${r.listed.id}${r.label}:${this.store.stepOf(r)}`);
    if (!this.seen.changed(this.store.version, this.log, ...key)) return;
    const found: Found[] = runs.flatMap((run, i) => {
      const showers = entries[i];
      return isShowers(showers) ? [{ run, showers }] : [];
    });
    if (found.length === 0) {
      setText(this.note, entryText(entries[0]));
      // While others load, the old ones stay.
      if (entries[0] === "loading") return;
    } else {
      setText(this.note, found.map(({ run, showers }) =>
        `${runs.length > 1 ? `${run.label}: s` : "S"}tate before step ${count(showers.step)}`).join(", ") + ".");
    }
    this.legend.replaceChildren(...found.length === 0 ? [] : [
      make("li", {}, make("span", { class: "swatch dots" }), make("span", { class: "name" }, "data")),
      ...found.map(({ run }, i) => make("li", {},
        make("span", { class: `swatch colour-${i % SERIES_COLOURS}` }),
        make("span", { class: "name" }, runs.length > 1 ? run.label : "generated")))]);
    const contents = contentsOf(found, runs.length > 1, this.log);
    while (this.plots.length > contents.length) this.plots.pop()!.element.remove();
    contents.forEach((content, i) => {
      let plot = this.plots[i];
      if (!plot) {
        this.plots.push((plot = new ComparisonPlot()));
        this.grid.append(plot.element);
      }
      plot.show(content);
    });
  }

  repaint(): void {
    this.errors.repaint();
  }
}

function contentsOf(found: readonly Found[], several: boolean, log: boolean): ComparisonContent[] {
  const first = found[0]?.showers;
  if (!first) return [];
  const label = (one: Found) => several ? one.run.label : "generated";
  const profiles = (["x", "y", "z"] as const).flatMap((axis): ComparisonContent[] => {
    const data = first.profiles[axis]?.data;
    if (!data) return [];
    return [{
      title: `Profile along ${axis}`, xName: `cell in ${axis}`, yName: "mean GeV", low: 0,
      high: data.length, data, log,
      generated: found.flatMap((one, i) => {
        const colour = i % SERIES_COLOURS;
        const values = one.showers.profiles[axis]?.generated;
        return values?.length === data.length ? [{ label: label(one), values, colour }] : [];
      }),
    }];
  });
  const histograms = first.histograms.map((histogram): ComparisonContent => ({
    title: histogram.name, xName: histogram.name, yName: "events",
    low: histogram.low, high: histogram.high, data: histogram.data, log,
    generated: found.flatMap((one, i) => {
      const colour = i % SERIES_COLOURS;
      const same = one.showers.histograms.find((other) => other.name === histogram.name);
      return same?.generated.length === histogram.data.length
        ? [{ label: label(one), values: same.generated, colour }] : [];
    }),
  }));
  return [...profiles, ...histograms];
}
