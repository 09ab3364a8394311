// The part of the page that is seen without scrolling.

import assert from "node:assert/strict";
import { test } from "node:test";

import { keep, openPage } from "./browser.mjs";
import { fixture } from "./fixture.mjs";
import { MockRun } from "./mock_run.mjs";
import { twoRuns } from "./mock_server.mjs";

// The last one has only begun.
const it = fixture([], () => [...twoRuns(),
  { run: new MockRun({ name: "begun" }), folder: "runs/begun", live: false }]);
const options = { timeout: 900_000 };
const NOTHING = /Nothing yet|No validation|No step|No showers|No actors|No lines|nothing to compare|none yet/;

// The parts of elements, in pixels, that lie on the first screen.
const seen = (page, selector) => page.evaluate((wanted) => [...document.querySelectorAll(wanted)].map((e) => {
  const { top, bottom } = e.getBoundingClientRect();
  return Math.max(0, Math.min(bottom, window.innerHeight) - Math.max(top, 0));
}), selector);

// True if the whole element is on the first screen.
const whole = (page, selector) => page.locator(selector).first().evaluate((e) => {
  const { top, bottom } = e.getBoundingClientRect();
  return top >= 0 && bottom <= window.innerHeight;
});

for (const [what, width, height, phone] of [["a screen", 1440, 900, false], ["a phone", 390, 844, true]]) {
  for (const scheme of ["light", "dark"]) {
    test(`Merit, physics, state and losses are on the first screen of ${what}, ${scheme}`, options, async () => {
      const page = await openPage(it.browser, it.address, { width, height, phone, scheme });
      await page.waitForFunction((plots) => Number(document.querySelector("#losses .chart")?.dataset.points) > 0 &&
        document.querySelectorAll("#physics .comparison svg").length >= plots, phone ? 0 : 5);
      for (const selector of [".run .state", ".run .bar", ".glance", "#merit .plot"]) {
        assert.ok(await whole(page, selector), selector);
      }
      assert.match(await page.textContent(".glance"), /Figure of merit0\.\d+Best so far0\.\d+Response/);
      assert.match(await page.textContent(".glance"), /Longitudinal\d.* % off.*Hits\d.* % off.*Epoch1\d of 80/);
      assert.ok((await seen(page, "#losses .plot"))[0] > (phone ? 100 : 210), "losses");
      if (!phone) assert.ok((await seen(page, "#physics .comparison svg")).every((p) => p > 120), "physics");
      for (const name of ["Core hours", "Metrics dropped"]) {
        assert.ok(!(await whole(page, `dt:text-is("${name}")`)), name);
      }
      assert.equal(await page.evaluate(() => window.scrollY), 0);
      await keep(page, `first-screen-${scheme}-${width}`, false);
    });
  }
}

for (const [what, width, height, phone] of [["a screen", 1440, 900, false], ["a phone", 390, 844, true]]) {
  test(`Two live runs are a line each, and leave ${what} its curves`, options, async () => {
    const page = await openPage(it.browser, `${it.address}#runs=0,1`, { width, height, phone });
    await page.waitForFunction((plots) => document.querySelectorAll("article.run").length === 2 &&
      Number(document.querySelector("#losses .chart")?.dataset.points) > 0 &&
      document.querySelectorAll("#physics .comparison svg").length >= plots, phone ? 0 : 5);
    for (const run of await page.locator("article.run").all()) {
      assert.ok((await run.boundingBox()).height < (phone ? 80 : 40), `${(await run.boundingBox()).height}`);
      assert.match(await run.innerText(), phone ? /merit\s*0\.\d+/ : /merit\s*0\.\d+[^]*Epoch/);
      for (const part of ["h2", ".state", ".bar", ".glance dd"]) {
        const box = await run.locator(part).first().boundingBox();
        assert.ok(box.width > 0 && box.x >= 0 && box.x + box.width <= width && box.y + box.height <= height, part);
      }
    }
    assert.ok(await whole(page, "#merit .plot"), "merit");
    assert.ok((await seen(page, "#losses .plot"))[0] > 100, "losses");
    if (!phone) assert.ok((await seen(page, "#physics .comparison svg")).every((p) => p > 120), "physics");
    await keep(page, `first-screen-two-${width}`, false);
  });
}

test("Sections that nobody has scrolled to show what was measured", options, async () => {
  const page = await openPage(it.browser, it.address, { height: 300 });
  await page.waitForFunction(() => document.querySelectorAll("#physics .comparison svg").length >= 5);
  const told = await page.innerText("main");
  assert.doesNotMatch(told, NOTHING);
  assert.match(told, /Data, \d.* GeV in/);
  assert.match(told, /drawn in space when this comes into sight/);
  // Panels draw one after the other, without being scrolled to. The chart of another figure by which the
  // best is chosen is hidden here.
  for (const id of ["merit", "losses", "pace"]) {
    await page.waitForFunction((panel) => {
      const charts = [...document.querySelectorAll(`#${panel} .chart:not([hidden])`)];
      return charts.length > 0 && charts.every((chart) => Number(chart.dataset.points) > 0);
    }, id);
  }
  assert.ok(await page.locator("#actors tbody tr").count() > 10);
  assert.ok(await page.locator(".node").count() >= 4);
  assert.equal(await page.evaluate(() => window.scrollY), 0);
  await keep(page, "never-scrolled-1440");
});

test("A run of which nothing was measured yet says so", options, async () => {
  const page = await openPage(it.browser, `${it.address}#runs=2`);
  await page.waitForFunction(() => /none yet/.test(document.querySelector(".glance").textContent));
  assert.match(await page.textContent("#merit"), /No validation has been made yet/);
  assert.match(await page.textContent("#losses"), /No step has been made yet/);
  assert.match(await page.textContent("#physics"), /No showers yet/);
});

test("What is printed is of now, whole and light, and the screen is dark again behind it", options, async () => {
  it.still = true;
  const page = await openPage(it.browser, it.address, { height: 300, scheme: "dark" });
  const is = (theme) => page.waitForFunction((wanted) =>
    document.documentElement.dataset.theme === wanted, theme);
  await page.waitForFunction(() => document.querySelectorAll("#physics .comparison svg").length >= 5);
  await is("dark");
  const before = await page.locator("#happened li").count();
  it.run.mark("node", "member.9 was lost: the power failed");
  ++it.run.version;
  it.server.push();
  await page.waitForTimeout(500);
  // A change of media is told with a frame, and a picture makes one.
  await page.emulateMedia({ media: "print" });
  await page.screenshot();
  await is("light");
  assert.equal(await page.locator("#happened li").count(), before + 1);
  await page.emulateMedia({ media: "screen" });
  await page.screenshot();
  await is("dark");
  const paper = await page.evaluate(() => new Promise((done) => {
    window.addEventListener("beforeprint", () => done(document.documentElement.dataset.theme));
    window.dispatchEvent(new Event("beforeprint"));
  }));
  assert.equal(paper, "light");
  assert.ok((await page.pdf()).length > 50_000);
});
