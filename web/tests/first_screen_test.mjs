// What is seen without scrolling.

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

// The parts of elements, in pixels, that lie on the first screen.
const seen = (page, selector) => page.evaluate((wanted) => [...document.querySelectorAll(wanted)].map((e) => {
  const { top, bottom } = e.getBoundingClientRect();
  return Math.max(0, Math.min(bottom, window.innerHeight) - Math.max(top, 0));
}), selector);

// Whether that element is whole on the first screen.
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
      assert.match(await page.textContent(".glance"), /Figure of merit0\.\d+Best so far0\.\d+Sampling fraction/);
      assert.match(await page.textContent(".glance"), /Longitudinal\d.* % off.*Hits\d.* % off.*Epoch15 of 80/);
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
