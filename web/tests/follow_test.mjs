// The page of several folders: all runs that are live are followed until they end.

import assert from "node:assert/strict";
import { test } from "node:test";

import { keep, openPage, showAll } from "./browser.mjs";
import { fixture } from "./fixture.mjs";
import { MockRun } from "./mock_run.mjs";
import { twoRuns } from "./mock_server.mjs";
import { source } from "./source.mjs";

const { MOST_RUNS, runsToFollow } = await source("run_choice.ts");
const { curveStyle, DASHES, SERIES_COLOURS } = await source("palette.ts");

test("Runs that are live are followed, and stay when they have ended while there is room", () => {
  const runs = (text) => [...text].map((state, id) => ({ id, name: "", folder: "", live: state === "l" }));
  const all = "l".repeat(MOST_RUNS);
  for (const [listed, before, wanted] of [
    ["ll", [], [0, 1]],
    ["eel", [], [2]],
    ["ee", [], []],
    ["el", [0, 1], [0, 1]],        // one has ended
    ["lel", [1], [1, 0, 2]],       // it keeps its place, and its colour
    ["", [0, 1], []],
    [`${all}l`, [], [...all].map((_, id) => id)],
    [`e${all}`, [0], [...all].map((_, id) => id + 1)],
  ]) {
    assert.deepEqual(runsToFollow(runs(listed), before), wanted, `${listed} after ${before}`);
  }
});

test("No two curves of as many runs as are shown look the same", () => {
  assert.equal(new Set(DASHES.map(String)).size, DASHES.length);
  for (let each = 1; each <= SERIES_COLOURS; ++each) {
    const styles = Array.from({ length: MOST_RUNS * each }, (_, i) =>
      JSON.stringify(curveStyle(Math.floor(i / each), i % each, each)));
    assert.equal(new Set(styles).size, styles.length, `${each} curves of each of ${MOST_RUNS} runs`);
  }
});

// Two that train, and one that has ended.
function threeRuns() {
  const [first, done] = twoRuns();
  const second = new MockRun({ name: "gan3d_25-day", seed: 9, began: Date.now() / 1000 - 60 });
  second.advance(60, 1);
  return [first, { run: second, folder: "runs/day", live: true }, done];
}

const it = fixture([], threeRuns);
const options = { timeout: 900_000 };

const heads = (page) => page.evaluate(() => Object.fromEntries([...document.querySelectorAll("article.run")]
  .map((run) => [run.querySelector("h2").textContent, run.querySelector(".state").textContent])));
const iterationOf = (page, name) => page.locator("article.run", { hasText: name })
  .locator("dl > div", { hasText: "Iteration" }).locator("dd").textContent();
const until = (page, wanted) => page.waitForFunction((told) => JSON.stringify(Object.fromEntries(
  [...document.querySelectorAll("article.run")].map((run) =>
    [run.querySelector("h2").textContent, run.querySelector(".state").textContent]))) === told,
JSON.stringify(wanted));

test("All live runs are followed over one connection, each to its end, and when it is resumed", options, async () => {
  const page = await openPage(it.browser, it.address);
  await until(page, { "gan3d_25-night": "training", "gan3d_25-day": "training" });
  assert.equal(it.server.streams.size, 1);
  assert.ok(!page.url().includes("#"), page.url());
  const [night, day, done] = it.runs;
  // Both move.
  for (const [{ run }, name] of [[night, "gan3d_25-night"], [day, "gan3d_25-day"]]) {
    const before = await iterationOf(page, name);
    run.advance(5, 0.1);
    it.server.push();
    await page.waitForFunction(([wanted, text]) => [...document.querySelectorAll("article.run")].some((head) =>
      head.querySelector("h2").textContent === wanted && !head.textContent.includes(`Iteration${text}`)),
    [name, before]);
  }

  night.run.end("ended", "");
  night.live = false;
  it.server.push();
  await until(page, { "gan3d_25-night": "finished", "gan3d_25-day": "training" });
  assert.match(await page.textContent(".runs"), /gan3d_25-nightfinishedgan3d_25-daylive/);
  // A run that was over is resumed.
  done.run.facts = { ...done.run.facts, iterations: 900 };
  done.run.state = "training";
  done.live = true;
  await until(page, { "gan3d_25-night": "finished", "gan3d_25-day": "training", "gan3d_25-two-workers": "training" });
  assert.equal(it.server.streams.size, 1);
  day.run.end("failed", "the power failed");
  day.live = false;
  done.run.advance(1, 0.1);
  it.server.push();
  await until(page, { "gan3d_25-night": "finished", "gan3d_25-day": "failed", "gan3d_25-two-workers": "training" });
  assert.match(await page.textContent(".run-headers"), /the power failed/);
  // So is one that had ended while it was followed.
  night.run.state = "training";
  night.live = true;
  night.run.advance(1, 0.1);
  it.server.push();
  await until(page, { "gan3d_25-night": "training", "gan3d_25-day": "failed", "gan3d_25-two-workers": "training" });
  await showAll(page);
  await keep(page, "followed-1440");
  assert.deepEqual(page.errors, []);
});

test("What somebody has chosen stays chosen, until nothing is", options, async () => {
  const page = await openPage(it.browser, `${it.address}#runs=0`);
  assert.deepEqual(Object.keys(await heads(page)), ["gan3d_25-night"]);
  await page.locator(".choices input").nth(1).check();
  await page.waitForFunction(() => document.querySelectorAll("article.run").length === 2);
  assert.match(page.url(), /#runs=0,1$/);
  await page.locator(".choices input").nth(0).uncheck();
  await page.waitForFunction(() => document.querySelectorAll("article.run").length === 1);
  assert.deepEqual(Object.keys(await heads(page)), ["gan3d_25-day"]);
  await page.locator(".choices input").nth(1).uncheck();
  await page.waitForFunction(() => document.querySelectorAll("article.run").length >= 2);
  assert.ok(!page.url().includes("#"), page.url());
});
