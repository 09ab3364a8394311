// A browser and a server of made-up runs, for as long as a file of tests runs.

import { after, afterEach, before } from "node:test";

import { fileURLToPath } from "node:url";

import { launch } from "./browser.mjs";
import { MockServer, twoRuns } from "./mock_server.mjs";

const built = fileURLToPath(new URL("../../build/release/web/page", import.meta.url));

export function fixture(options = [], runs = twoRuns) {
  const it = {};
  before(async () => {
    it.browser = await launch(options);
    it.runs = runs();
    it.run = it.runs[0].run;
    it.server = new MockServer(process.env.TROUPE_PAGE ?? built, it.runs);
    it.address = await it.server.start();
    // Two iterations a second until a test wants it otherwise.
    it.timer = setInterval(() => {
      if (it.still) return;
      it.run.advance(1, 0.5);
      it.run.time = Date.now() / 1000;
      it.server.push();
    }, 500);
  });
  // A page that a failed test has left would take the others' time.
  afterEach(async () => {
    it.still = false;
    await Promise.all(it.browser.contexts().map((context) => context.close()));
  });
  after(async () => {
    clearInterval(it.timer);
    await it.browser?.close();
    await it.server?.stop();
  });
  return it;
}
