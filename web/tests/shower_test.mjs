import assert from "node:assert/strict";
import { test } from "node:test";

import { launch, openPage } from "./browser.mjs";
import { fixture } from "./fixture.mjs";

const it = fixture();
const options = { timeout: 900_000 };
const painted = (page) => page.evaluate(() => Number(document.querySelector(".stage canvas").dataset.painted ?? 0));

async function grown(page, before) {
  await page.waitForFunction((n) => Number(document.querySelector(".stage canvas").dataset.painted) > n, before);
}

test("What draws in space is loaded when somebody looks at it", options, async () => {
  const page = await openPage(it.browser, it.address, { height: 500 });
  assert.ok(!page.requests.some((url) => /shower_scene/.test(url)));
  await page.locator("#showers").scrollIntoViewIfNeeded();
  await grown(page, 0);
  assert.ok(page.requests.some((url) => /shower_scene/.test(url)));
});

test("Showers are turned by mouse, touch and keyboard", options, async () => {
  const page = await openPage(it.browser, it.address);
  await page.locator("#showers").scrollIntoViewIfNeeded();
  await grown(page, 0);
  let before = await painted(page);
  await page.locator(".stage").focus();
  for (const key of ["ArrowLeft", "ArrowUp", "+", "-", "0"]) {
    await page.keyboard.press(key);
    await grown(page, before);
    before = await painted(page);
  }
  // Panels above may just have grown, and moved it.
  const canvas = page.locator(".stage canvas");
  await canvas.hover({ position: { x: 100, y: 100 } });
  await page.mouse.down();
  await canvas.hover({ position: { x: 160, y: 130 } });
  await page.mouse.up();
  await grown(page, before);
  // Both halves show something: cells brighter than the ground.
  const lit = await page.locator(".stage").screenshot();
  assert.ok(lit.length > 8000);
});

test("Step and event are chosen, for profiles and showers alike", options, async () => {
  const select = (label) => page.locator("#showers label", { hasText: label }).locator("select");
  const page = await openPage(it.browser, it.address);
  await page.locator("#showers").scrollIntoViewIfNeeded();
  await grown(page, 0);
  await select("Event").selectOption({ label: "3: 50.0 GeV" });
  assert.match(await page.textContent("#shower-words"), /3: 50\.0 GeV\. Data: /);
  await select("State before").selectOption("400");
  await page.waitForFunction(() => /step 400,/.test(document.querySelector("#shower-words").textContent));
  await page.waitForFunction(() => /step 400\./.test(document.querySelector("#physics").textContent));
});

test("A browser without WebGL says so and lists the brightest cells", options, async () => {
  const browser = await launch(["flat"]);
  const page = await openPage(browser, it.address);
  await page.locator("#showers").scrollIntoViewIfNeeded();
  await page.waitForFunction(() => /shows no WebGL/.test([...document.querySelectorAll("#showers .note:not([hidden])")]
    .map((n) => n.textContent).join(" ")));
  await page.locator("#showers summary").click();
  await page.waitForFunction(() => document.querySelectorAll("#showers tbody tr").length === 15);
  await browser.close();
});
