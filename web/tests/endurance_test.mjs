import assert from "node:assert/strict";
import { test } from "node:test";

import { openPage, showAll } from "./browser.mjs";
import { fixture } from "./fixture.mjs";

const it = fixture();

// A day of updates, one a second, as fast as they go: by then every list and series has been full
// for long, so what still grows would grow for ever.
const UPDATES = Number(process.env.TROUPE_UPDATES ?? 86_400);
const FULL = Math.floor(UPDATES / 4);

async function heap(page, session) {
  await page.waitForTimeout(1500);
  for (let i = 0; i < 3; ++i) await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  const { nodes } = await session.send("Memory.getDOMCounters");
  return { bytes: usedSize, nodes };
}

async function play(page, from, to) {
  const [stream] = it.server.streams;
  for (let i = from; i < to; ++i) {
    it.run.state = "training";
    it.run.facts.iterations = 1e9;
    it.run.advance(1, 0.25);
    if (i % 4 === 0) it.run.tell("info", `update ${i}`);
    const update = it.run.since(stream.versions.get(0));
    if (i % 10 !== 0) delete update.nodes;
    if (it.run.showers.length > 100) it.run.showers.shift();
    if (!it.server.send(stream, 0, "update", update)) {
      await new Promise((done) => stream.response.once("drain", done));
    }
  }
  const step = it.run.step;
  await page.waitForFunction((n) => Number(document.querySelectorAll("#losses [role=slider]")[0]
    ?.getAttribute("aria-valuemax")) >= n - 60, step, { timeout: 1_800_000 });
}

test("A page that stays open for a day needs no more memory than after a few hours",
  { timeout: 3_600_000 }, async () => {
    it.still = true;
    const page = await openPage(it.browser, it.address);
    await showAll(page);
    const session = await page.context().newCDPSession(page);
    await play(page, 0, FULL);
    const before = await heap(page, session);
    await play(page, FULL, UPDATES);
    const after = await heap(page, session);
    console.log(`# heap ${(before.bytes / 1e6).toFixed(1)} MB and ${before.nodes} nodes after ${FULL} updates, ` +
      `${(after.bytes / 1e6).toFixed(1)} MB and ${after.nodes} nodes after ${UPDATES}`);
    // Validations come with every epoch and are kept up to a thousand.
    assert.ok(after.bytes < before.bytes + 6e6, `${before.bytes} grew to ${after.bytes}`);
    assert.ok(after.nodes < before.nodes * 1.2 + 500, `${before.nodes} nodes grew to ${after.nodes}`);
  });
