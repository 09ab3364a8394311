// A server as docs/watching.md describes it, of made-up runs: for tests of the page, and to work on
// it without training anything: node mock_server.mjs PAGE_FOLDER [PORT].

import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

import { MockRun } from "./mock_run.mjs";
import { makeShowers } from "./mock_showers.mjs";

const TYPES = { ".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript",
  ".svg": "image/svg+xml", ".txt": "text/plain" };
const POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:";

export class MockServer {
  // `runs`: [{ run, folder, live, pools }], where the last is absent where nobody may change them
  constructor(pageFolder, runs) {
    this.pageFolder = pageFolder;
    this.runs = runs;
    this.streams = new Set();
    this.resumed = 0;  // streams that went on from where they were
    this.control = "a secret word";
  }

  async start(port = 0) {
    this.server = createServer((request, response) => this.answer(request, response));
    await new Promise((done) => this.server.listen(port, "127.0.0.1", done));
    this.port = this.server.address().port;
    return `http://127.0.0.1:${this.port}/`;
  }

  // Sends the news to all streams.
  push() {
    for (const stream of this.streams) {
      for (const [id, version] of stream.versions) {
        const { run } = this.runs[id];
        if (run.version !== version) this.send(stream, id, "update", run.since(version));
      }
    }
  }

  // As if the process had died.
  async stop() {
    for (const stream of this.streams) stream.response.destroy();
    this.streams.clear();
    this.server.closeAllConnections?.();
    await new Promise((done) => this.server.close(done));
  }

  send(stream, id, event, update) {
    stream.versions.set(id, update.version);
    const name = stream.versions.size > 1 ? `${event} ${id}` : event;
    return stream.response.write(
      `event: ${name}\nid: ${[...stream.versions.values()].join()}\ndata: ${JSON.stringify(update)}\n\n`);
  }

  answer(request, response) {
    const path = new URL(request.url, "http://localhost").pathname;
    response.setHeader("Content-Security-Policy", POLICY);
    const [, api, , id, what, step] = path.split("/");
    if (api !== "api") return this.file(path, response);
    if (path === "/api/runs") {
      return json(response, { version: "0.1.0", runs: this.runs.map(({ run, ...rest }, i) =>
        ({ id: i, name: run.facts.name, ...rest })) });
    }
    if (what === "stream") return this.stream(request, response, id.split(",").map(Number));
    const found = this.runs[Number(id)];
    if (!found) return json(response, { error: `there is no run ${id}` }, 404);
    if (what === "history") return json(response, found.run.whole());
    if (what === "showers") {
      return json(response, makeShowers(Number(step), 1 - Math.exp(-Number(step) / 900), 7 + Number(id)));
    }
    if (what === "waits") {
      response.setHeader("Content-Type", "text/plain");
      return response.end("replica.0 waits for reducer.0: reduced of step 88\nreducer.0 waits for reducer.2: ring\n");
    }
    if (what === "burst") return this.burst(found, request, response);
    if (what === "trace") return json(response, { traceEvents: [] });
    return json(response, { error: "there is nothing at this address" }, 404);
  }

  async burst({ run, pools }, request, response) {
    const wrong = request.method !== "POST" || request.headers.authorization !== `Bearer ${this.control}`;
    if (wrong) return json(response, { error: "the token for changes is needed" }, 401);
    let body = "";
    for await (const piece of request) body += piece;
    const wish = JSON.parse(body);
    const pool = run.bill.pools.find((one) => one.name === wish.pool);
    const { most } = pools.find((one) => one.name === wish.pool);
    if (Number(wish.nodes) > most) return json(response, { error: `pool ${pool.name} has ${most} nodes at most` }, 409);
    const before = pool.wanted;
    pool.wanted = Number(wish.nodes);
    ++run.version;
    response.setHeader("Content-Type", "text/plain");
    return response.end(`pool ${pool.name}: ${pool.wanted} nodes are wanted, ${before} before\n`);
  }

  stream(request, response, ids) {
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    response.write("retry: 1000\n\n");
    const stream = { response, versions: new Map(ids.map((id) => [id, 0])) };
    this.streams.add(stream);
    response.on("close", () => this.streams.delete(stream));
    const last = String(request.headers["last-event-id"] ?? "").split(",").map(Number);
    ids.forEach((id, i) => {
      const { run } = this.runs[id];
      if (run.cursors.has(last[i])) {
        ++this.resumed;
        this.send(stream, id, "update", run.since(last[i]));
      } else {
        this.send(stream, id, "history", run.whole());
      }
    });
  }

  file(path, response) {
    const name = path === "/" ? "index.html" : normalize(path).replace(/^(\.\.)?\/+/, "");
    try {
      const content = readFileSync(join(this.pageFolder, name));
      response.setHeader("Content-Type", TYPES[extname(name)] ?? "application/octet-stream");
      response.end(content);
    } catch {
      json(response, { error: "there is nothing at this address" }, 404);
    }
  }
}

function json(response, value, status = 200) {
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify(value));
}

// A run that has been on for a while and one that has ended.
export function twoRuns() {
  const now = Date.now() / 1000;
  const live = new MockRun({ began: now - 900 });
  live.advance(400, 1.1);
  live.kill("member.1");
  live.advance(160, 1.1);
  live.addMember("member.3");
  live.advance(140, 1.1);
  live.time = now;
  const done = new MockRun({ name: "gan3d_25-two-workers", members: 2, iterations: 600, seed: 5, began: now - 9000, price: 0 });
  done.advance(600, 1.3);
  live.bill = { pools: [{ name: "hpc", wanted: 4, running: 3, node_hours: 1.5, cost: 0.75, iterations: 310 }],
    cost: 0.75, cost_per_epoch: 0.25, cost_at_end: 1.5, first_cost: 1.25 };
  return [{ run: live, folder: "runs/night", live: true, pools: [{ name: "hpc", most: 16 }] }, { run: done, folder: "runs/two-workers", live: false }];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const runs = twoRuns();
  const server = new MockServer(process.argv[2], runs);
  console.log(await server.start(Number(process.argv[3] ?? 0)));
  setInterval(() => {
    runs[0].run.advance(1, 0.5);
    runs[0].run.time = Date.now() / 1000;
    server.push();
  }, 500);
}
