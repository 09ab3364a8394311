// A made-up run that behaves as a real one does: losses that fall, members that die and join,
// validations, showers, log lines. It keeps the data that the server would keep, and gives them in
// the same form, whole or only the news.

import { Random } from "./mock_random.mjs";

const POINTS = 2048;
const SCHEDULE = ["d_real", "d_fake", "g", "g"];
const LOSSES = [["generation", 3.0], ["auxiliary", 0.1], ["ecal", 0.1]];

class MockSeries {
  constructor() {
    this.width = 1;
    this.points = [];  // [x, count, mean, low, high]
  }

  add(x, value) {
    const last = this.points[this.points.length - 1];
    if (last && last[1] < this.width) {
      last[2] += (value - last[2]) / ++last[1];
      [last[0], last[3], last[4]] = [x, Math.min(last[3], value), Math.max(last[4], value)];
      return;
    }
    if (this.points.length === POINTS) this.halve();
    this.points.push([x, 1, value, value, value]);
  }

  halve() {
    const halved = [];
    for (let i = 0; i + 1 < this.points.length; i += 2) {
      const [a, b] = [this.points[i], this.points[i + 1]];
      halved.push([b[0], a[1] + b[1], (a[2] * a[1] + b[2] * b[1]) / (a[1] + b[1]),
        Math.min(a[3], b[3]), Math.max(a[4], b[4])]);
    }
    this.points = halved;
    this.width *= 2;
  }

  patch(from) {
    const points = this.points.slice(from);
    const column = (i) => points.map((p) => p[i]);
    return { width: this.width, from, x: column(0), mean: column(2), low: column(3), high: column(4) };
  }
}

export class MockRun {
  constructor(options = {}) {
    const { name = "gan3d_25-night", members = 3, iterations = 4000, seed = 1, price = 0.42 } = options;
    // A factor on losses and figures of merit, and the additional time of the first step.
    Object.assign(this, { size: options.size ?? 1, wait: options.wait ?? 0 });
    this.random = new Random(seed);
    this.began = options.began ?? Date.now() / 1000;
    this.time = this.began;
    this.facts = { name, model: "gan3d_25", version: "0.1.0", schedule: SCHEDULE, losses: LOSSES,
      iterations, iterations_per_epoch: 50, micro_batches: 4, micro_batch: 16, price_per_node_hour: price };
    Object.assign(this, { step: 0, iteration: 0, state: "training", error: "", dropped: 0, version: 1,
      series: new Map(), marks: [], validations: [], showers: [], log: [], nodes: [], cursors: new Map() });
    this.addNode("head", "head", ["coordinator", "loader", "checkpointer", "validator", "monitor"]);
    for (let i = 0; i < members; ++i) this.addMember(`member.${i}`, true);
    this.tell("info", `training ${name}: ${iterations} iterations of 64 events`);
  }

  addNode(name, role, actors) {
    this.nodes.push({ name, host: `node-${"abcdefgh"[this.nodes.length % 8]}`, role, pid: 4000 + this.nodes.length,
      state: "running", cause: "", since: this.time, cores: 0.1, resident_bytes: 3e8, sent_per_second: 1e4,
      received_per_second: 1e4, clock_error: role === "head" ? 0 : 0.0004,
      actors: actors.map((actor) => ({ name: actor, state: "waiting", handled: 0 })), links: [],
      devices: role === "head" ? [] : [{ device: "cuda:0", name: "stand-in", own_bytes: 2e9, used_bytes: 3e9,
        memory_bytes: 8e10, busy: 0.93, watts: 312, celsius: -1 }] });
  }

  addMember(name, silently = false) {
    const i = Number(name.split(".")[1]);
    this.addNode(name, "member", [name, `loader.${i}`, `replica.${2 * i}`, `replica.${2 * i + 1}`, `reducer.${i}`]);
    this.link();
    if (silently) return;
    this.mark("node", `${name} has joined`);
    this.tell("info", `${name} has joined and learns the state`);
    ++this.version;
  }

  kill(name) {
    const node = this.nodes.find((n) => n.name === name);
    Object.assign(node, { state: "dead", cause: "was killed by signal 9 (Killed)", since: this.time, cores: 0,
      sent_per_second: 0, received_per_second: 0, links: [] });
    for (const actor of node.actors) actor.state = "ended";
    this.link();
    this.mark("node", `${name} was lost: it was killed by signal 9`);
    this.mark("view", "");
    this.tell("warning", `${name} was lost: it was killed by signal 9 (Killed); 2 others go on`);
    ++this.version;
  }

  link() {
    const alive = this.nodes.filter((n) => n.role === "member" && n.state === "running");
    const make = (from, to, port, credits) => ({ from, to, port, sent: 0, in_use: 0, credits, queued: 0, dropped: 0 });
    alive.forEach((node, at) => {
      const i = node.name.split(".")[1];
      const next = alive[(at + 1) % alive.length].name.split(".")[1];
      node.links = [2 * i, 2 * i + 1].flatMap((r) => [
        make(`loader.${i}`, `replica.${r}`, "batches", 5), make(`replica.${r}`, `reducer.${i}`, "contributions", 32),
        make(`reducer.${i}`, `replica.${r}`, "reduced", 32), make(`replica.${r}`, "monitor", "metrics", 1024)]);
      for (const other of alive) {
        const j = other.name.split(".")[1];
        if (j !== i) node.links.push({ ...make(`reducer.${i}`, `reducer.${j}`, "ring", 80), active: j === next });
      }
    });
  }

  mark(kind, text) {
    this.marks.push({ kind, step: this.step, time: this.time, text });
    if (this.marks.length > 1000) this.marks.shift();
    this.counts = { ...this.counts, marks: (this.counts?.marks ?? 0) + 1 };
  }

  tell(level, text) {
    this.log.push({ time: this.time, level, text });
    if (this.log.length > 500) this.log.shift();
    this.counts = { ...this.counts, log: (this.counts?.log ?? 0) + 1 };
  }

  add(name, value) {
    let series = this.series.get(name);
    if (!series) this.series.set(name, (series = new MockSeries()));
    series.add(this.step, value);
  }

  // Iterations of four steps, each `seconds` long.
  advance(iterations = 1, seconds = 0.24) {
    const alive = this.nodes.filter((n) => n.role === "member" && n.state === "running").length;
    for (let n = 0; n < iterations && this.state === "training"; ++n) {
      for (const slot of SCHEDULE) {
        const t = this.step / 1500;
        const noise = () => Math.exp(0.12 * this.random.gauss());
        const level = this.size * { d_real: 0.35, d_fake: 0.5, g: 1.6 }[slot];
        this.add(`loss/${slot}/generation`, level * (1 + Math.exp(-t * 3)) * noise());
        this.add(`loss/${slot}/auxiliary`, (4 + 60 * Math.exp(-t * 2)) * noise() * (slot === "g" ? 1.3 : 1));
        this.add(`loss/${slot}/ecal`, (3 + 90 * Math.exp(-t * 2.6)) * noise() * (slot === "d_fake" ? 1.8 : 1));
        const per = (seconds / 4) * (3 / Math.max(1, alive)) + (this.step === 0 ? this.wait : 0);
        for (const [part, share] of [["load", 0.04], ["compute", 0.72], ["reduce", 0.18], ["apply", 0.06]]) {
          this.add(`seconds/${part}`, per * share * noise());
        }
        this.add("events_per_second", (64 / per / 4) * (1 + 0.05 * this.random.gauss()));
        this.time += per;
        ++this.step;
      }
      if (++this.iteration % 50 === 0) this.epoch();
      if (this.iteration >= this.facts.iterations) this.end("ended", "");
    }
    this.shake();
    ++this.version;
  }

  epoch() {
    const quality = 1 - Math.exp(-this.step / 900);
    const error = (scale) => this.size * scale * (1.02 - quality) * Math.exp(0.2 * this.random.gauss());
    const row = (name, comparison, floor = null) => ({ name, events: 500, empty_events: 0, invalid_events: 0,
      sampling_fraction: { mean: 0.0204, deviation: 0.0012 }, hits: { mean: 412.3, deviation: 31 }, comparison, floor });
    const compared = (s) => ({ merit: { total: s * error(1.4) }, sampling_fraction_error: s * error(0.4),
      sampling_fraction_width_error: s * error(0.6), unlike: s * this.size > 1 ? ["response", "transverse"] : [],
      hits_error: s * error(0.5), longitudinal_error: s * error(0.9), transverse_error: s * error(0.7),
      layer_correlation_difference: s * error(0.5) });
    this.mark("checkpoint", `checkpoint ${this.step} saved`);
    const generated = compared(1);
    this.mark("validation", `figure of merit ${generated.merit.total.toPrecision(4)}`);
    this.validations.push({ step: this.step, time: this.time,
      rows: [row("data", null, { merit: { total: 0.05 }, sampling_fraction_error: 0.002,
        sampling_fraction_width_error: 0.03, hits_error: 0.01, longitudinal_error: 0.014, transverse_error: 0.012,
        layer_correlation_difference: 0.03, unlike: [] }), row("untrained", compared(4)), row("generated", generated)] });
    this.showers.push(this.step);
    this.tell("info", `epoch ${this.iteration / 50}: checkpoint ${this.step} saved`);
  }

  end(state, error) {
    this.state = state;
    this.error = error;
    for (const node of this.nodes) {
      if (node.state !== "dead") Object.assign(node, { state: "ended", cores: 0, links: [] });
    }
    this.tell(state === "failed" ? "error" : "info", error || `the run has ${state}`);
    ++this.version;
  }

  // Links and figures of nodes as they might be now.
  shake() {
    for (const node of this.nodes) {
      if (node.state !== "running") continue;
      node.cores = node.role === "head" ? 0.2 : 1.8 + 0.2 * this.random.next();
      node.sent_per_second = node.role === "head" ? 2e4 : 4e7 * this.random.next();
      node.received_per_second = node.sent_per_second * 0.98;
      for (const actor of node.actors) {
        actor.handled += Math.floor(20 * this.random.next());
        actor.state = ["waiting", "running", "queued", "waiting"][Math.floor(4 * this.random.next())];
      }
      for (const link of node.links) {
        const busy = link.active !== false;
        link.sent += busy ? 4 : 0;
        link.in_use = busy && link.port !== "metrics" ? Math.floor((link.credits + 1) * this.random.next()) : 0;
        link.queued = Math.floor(link.in_use / 2);
      }
    }
  }

  // As the server counts them.
  epochs() {
    const { iterations, iterations_per_epoch: per } = this.facts;
    const [epochs, all] = [Math.floor(this.iteration / per), Math.ceil(iterations / per)];
    return { epochs, epoch: Math.min(epochs + 1, all), all_epochs: all };
  }

  progress() {
    const rate = this.series.get("events_per_second")?.points.at(-1)?.[2] ?? 0;
    const left = (this.facts.iterations - this.iteration) * 64;
    const hours = ((this.time - this.began) / 3600) * this.nodes.filter((n) => n.role === "member").length;
    return { state: this.state, error: this.error, steps: this.step, iterations: this.iteration,
      ...this.epochs(), events: this.iteration * 64,
      events_per_second: this.state === "training" ? rate : 0, seconds_left: this.state !== "training" || rate === 0 ? null : left / rate,
      dropped: this.dropped, began: this.began, newest: this.time, node_hours: hours, core_hours: 2 * hours,
      cost: hours * this.facts.price_per_node_hour };
  }

  cursor() {
    return { marks: this.counts.marks ?? 0, log: this.counts.log, validations: this.validations.length,
      series: new Map([...this.series].map(([name, s]) => [name, [s.width, s.points.length]])) };
  }

  // Remembers the last news, so that since() can go on from them.
  remember() {
    this.cursors.set(this.version, this.cursor());
    if (this.cursors.size > 200) this.cursors.delete(this.cursors.keys().next().value);
  }

  whole() {
    this.remember();
    return { version: this.version, whole: true, now: Date.now() / 1000, run: this.facts, progress: this.progress(),
      series: Object.fromEntries([...this.series].map(([name, s]) => [name, s.patch(0)])), marks: this.marks,
      nodes: this.nodes, validations: this.validations, showers: this.showers, bill: this.bill, log: this.log };
  }

  since(version) {
    const from = this.cursors.get(version);
    if (!from) return this.whole();
    this.remember();
    const update = { version: this.version, whole: false, now: Date.now() / 1000, progress: this.progress(),
      nodes: this.nodes, showers: this.showers, bill: this.bill, series: {} };
    for (const [name, series] of this.series) {
      const [width, length] = from.series.get(name) ?? [1, 0];
      update.series[name] = series.patch(width === series.width ? Math.max(0, length - 1) : 0);
    }
    const tail = (list, count, before) => list.slice(Math.max(0, list.length - (count - before)));
    update.marks = tail(this.marks, this.counts.marks ?? 0, from.marks);
    update.log = tail(this.log, this.counts.log, from.log);
    update.validations = this.validations.slice(from.validations);
    return update;
  }
}
