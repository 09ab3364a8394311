import assert from "node:assert/strict";
import { test } from "node:test";

import { keep, openPage } from "./browser.mjs";
import { fixture } from "./fixture.mjs";
import { MockRun } from "./mock_run.mjs";

// Its losses and its merit are around 1e-6, and its first step took 40 s.
function oddRun() {
  const run = new MockRun({ began: Date.now() / 1000 - 900, size: 1e-6, wait: 40 });
  run.advance(200, 0.4);
  run.kill("member.1");
  run.advance(100, 0.4);
  run.addMember("member.3");
  run.advance(100, 0.4);
  run.time = Date.now() / 1000;
  return [{ run, folder: "runs/odd", live: true }];
}

const it = fixture([], oddRun);
const options = { timeout: 900_000 };
const number = (text) => Number(text.replaceAll("\u2212", "-").replaceAll("\u202f", ""));
const texts = (page, title) => page.evaluate((name) => window.texts[name], title);
const chart = (page, title) => page.locator(".chart", { has: page.locator("h3", { hasText: title }) });

async function drawn(page, title) {
  await page.waitForFunction((name) => window.texts[name] !== undefined, title);
  return texts(page, title);
}

test("A slow first step does not flatten the steps after it, and is told", options, async () => {
  it.still = true;
  const page = await openPage(it.browser, it.address, { texts: true });
  const ticks = Object.keys(await drawn(page, "Seconds per step")).map(number).filter(Number.isFinite);
  // Steps are below that; numbers of steps along the chart begin at 100.
  assert.ok(Math.max(...ticks.filter((tick) => tick < 100)) < 0.5, String(ticks));
  const pace = chart(page, "Seconds per step");
  assert.match(await pace.locator(".outside").textContent(), /^▲ 1 point above the scale, at (39|40) s$/);
  assert.match(await pace.locator(".legend").textContent(), /compute\d\d\.\d ms/);
  // A view of the first steps alone has it on the scale.
  await pace.locator("[role=slider]").scrollIntoViewIfNeeded();
  const box = await pace.locator(".u-over").boundingBox();
  await page.mouse.move(box.x + 1, box.y + 20);
  await pace.locator("[role=slider]").focus();
  for (let i = 0; i < 8; ++i) await page.keyboard.press("+");
  await page.waitForFunction(() => Object.keys(window.texts["Seconds per step"]).includes("40"));
  assert.ok(await pace.locator(".outside").isHidden());
});

test("Losses and figures of merit of 1e-6 are read at the axis and beside the curve", options, async () => {
  it.still = true;
  for (const log of [true, false]) {
    const page = await openPage(it.browser, it.address, { texts: true });
    await page.getByLabel("Logarithmic").first().setChecked(log);
    const losses = Object.keys(await drawn(page, "generation, weight 3"));
    assert.ok(losses.filter((text) => /^[\d.]+e\u2212[67]$/.test(text)).length >= 2, String(losses));
    assert.match(await chart(page, "generation").first().locator(".legend").textContent(), /g1\.\d\de\u22126/);
    const merit = Object.keys(await drawn(page, "Figure of merit"));
    assert.ok(merit.filter((text) => /^[\d.]+e\u2212[67]$/.test(text)).length >= 2, String(merit));
    assert.match(await page.textContent(".glance"), /Figure of merit\d\.\d\de\u2212[78]/);
    if (log) await keep(page, "small-numbers-1440");
  }
});

test("Labels of what happened stand above the curves", options, async () => {
  it.still = true;
  for (const width of [390, 1440]) {
    const page = await openPage(it.browser, it.address, { width, texts: true });
    for (const title of ["generation, weight 3", "Events per second"]) {
      const written = await drawn(page, title);
      const above = await chart(page, title).first().locator(".u-over").evaluate((over) => over.offsetTop);
      const size = await page.evaluate(() => parseFloat(getComputedStyle(document.documentElement).fontSize));
      for (const label of ["member.1 was lost", "member.3 has joined"]) {
        assert.ok(written[label] >= 0, `${title} has no ${label}`);
        // Text is written from its top.
        assert.ok(written[label] + size <= above, `${label} at ${written[label]} of ${above}`);
      }
    }
  }
});
