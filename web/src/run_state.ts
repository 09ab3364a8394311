// The state of one run. Memory stays bounded: series as the server halves them, lists by the limits
// below.

import type {
  Bill, LogLine, Mark, Progress, RunFacts, RunNode, Update, Validation,
} from "./protocol.ts";
import { Series } from "./series.ts";

const MARKS = 1000;
const LOG_LINES = 500;
const VALIDATIONS = 1000;

export type Part =
  | "run" | "progress" | "series" | "marks" | "nodes" | "validations" | "showers" | "bill" | "log";
const PARTS: Part[] = [
  "run", "progress", "series", "marks", "nodes", "validations", "showers", "bill", "log",
];

export class RunState {
  version = -1;
  // Server's clock minus ours, in seconds.
  clockOffset = 0;
  run: RunFacts | undefined;
  progress: Progress | undefined;
  series = new Map<string, Series>();
  marks: Mark[] = [];
  nodes: RunNode[] = [];
  validations: Validation[] = [];
  showers: number[] = [];
  bill: Bill | undefined;
  log: LogLine[] = [];
  // How many lines were ever appended since the log was last replaced.
  logAppended = 0;
  // How often each part changed; a "whole" changes all of them.
  changes: Record<Part, number> = {
    run: 0, progress: 0, series: 0, marks: 0, nodes: 0, validations: 0, showers: 0, bill: 0, log: 0,
  };
  wholes = 0;

  apply(update: Update): void {
    if (update.whole) this.forget();
    this.version = update.version;
    this.clockOffset = update.now - Date.now() / 1000;
    if (update.run) this.run = update.run;
    if (update.progress) this.progress = update.progress;
    if (update.nodes) this.nodes = update.nodes;
    if (update.showers) this.showers = update.showers;
    if (update.bill) this.bill = update.bill;
    for (const [name, patch] of Object.entries(update.series ?? {})) {
      let series = this.series.get(name);
      if (!series) this.series.set(name, (series = new Series()));
      series.apply(patch);
    }
    append(this.marks, update.marks, MARKS);
    append(this.validations, update.validations, VALIDATIONS);
    append(this.log, update.log, LOG_LINES);
    this.logAppended += update.log?.length ?? 0;
    for (const part of PARTS) if (update.whole || update[part]) ++this.changes[part];
  }

  get finished(): boolean {
    return ["ended", "failed", "stopped"].includes(this.progress?.state ?? "");
  }

  // Seconds since 1970 as the server counts them.
  now(): number {
    return Date.now() / 1000 + this.clockOffset;
  }

  private forget(): void {
    this.run = undefined;
    this.progress = undefined;
    this.series.clear();
    this.marks = [];
    this.nodes = [];
    this.validations = [];
    this.showers = [];
    this.bill = undefined;
    this.log = [];
    this.logAppended = 0;
    ++this.wholes;
  }
}

function append<T>(list: T[], added: readonly T[] | undefined, most: number): void {
  for (const item of added ?? []) list.push(item);
  if (list.length > most) list.splice(0, list.length - most);
}
