// The stream over which runs come, without a browser: when it is opened anew.

import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { source } from "./source.mjs";

const { Connection, Feed } = await source("connection.ts");
const { RunState } = await source("run_state.ts");

class Source extends EventTarget {
  static opened = [];

  constructor(address) {
    super();
    Source.opened.push(address);
    Source.last = this;
  }

  close() {}

  tell(id, state) {
    this.dispatchEvent(new MessageEvent(`update ${id}`, { data: JSON.stringify({ version: 1, progress: { state, steps: 1 } }) }));
  }
}

test("The stream is opened anew when all live runs are silent, and not for one of them", () => {
  mock.timers.enable({ apis: ["Date", "setInterval", "setTimeout"] });
  Object.assign(globalThis, { EventSource: Source, window: Object.assign(new EventTarget(),
    { setInterval: globalThis.setInterval, setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout }) });
  const runs = [0, 1, 2].map((id) => new Connection(id, new RunState()));
  new Feed(() => {}).follow(runs);
  assert.deepEqual(Source.opened, ["/api/runs/0,1,2/stream"]);
  Source.last.tell(0, "training");
  Source.last.tell(1, "training");
  Source.last.tell(2, "ended");
  for (let seconds = 0; seconds < 180; ++seconds) {
    mock.timers.tick(1000);
    Source.last.tell(1, "training");
  }
  assert.equal(runs[0].link.kind, "silent");
  assert.equal(runs[1].link.kind, "live");
  assert.equal(Source.opened.length, 1);
  for (let seconds = 0; seconds < 70; ++seconds) mock.timers.tick(1000);
  assert.equal(runs[1].link.kind, "silent");
  assert.equal(Source.opened.length, 2);
  mock.timers.reset();
});
