import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";

import { keep, openPage, showAll } from "./browser.mjs";
import { fixture } from "./fixture.mjs";

const it = fixture();
const options = { timeout: 900_000 };
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

async function violations(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa",
    "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  return found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(" ")).slice(0, 4).join(", ")}`);
}

for (const scheme of ["light", "dark"]) {
  for (const [what, width, hash] of [["a wall screen", 1440, ""], ["a phone", 390, ""],
    ["two runs", 1440, "#runs=0,1"]]) {
    test(`axe finds nothing to object to on ${what}, ${scheme}`, options, async () => {
      const page = await openPage(it.browser, it.address + hash, { width, scheme });
      await showAll(page);
      assert.deepEqual(await violations(page), []);
      // All tables open.
      await page.evaluate(() => document.querySelectorAll("details").forEach((d) => (d.open = true)));
      await showAll(page);
      assert.deepEqual(await violations(page), []);
      if (what !== "two runs") await keep(page, `tables-${scheme}-${width}`);
    });
  }
}

test("Every control is reached by keyboard and shows that it is", options, async () => {
  it.still = true;
  const page = await openPage(it.browser, it.address);
  await showAll(page);
  const wanted = await page.evaluate(() => {
    const controls = [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")]
      .filter((e) => !e.disabled && e.checkVisibility());
    controls.forEach((e, i) => (e.dataset.control = i));
    return controls.map((e) => `${e.tagName} ${e.getAttribute("aria-label") ?? e.textContent.slice(0, 30)}`);
  });
  assert.ok(wanted.length > 50);
  const reached = new Set();
  for (let i = 0; i < wanted.length + 20; ++i) {
    await page.keyboard.press("Tab");
    const now = await page.evaluate(() => {
      const e = document.activeElement;
      const style = getComputedStyle(e);
      return { control: e.dataset.control, name: e.outerHTML.slice(0, 100),
        seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1.5 };
    });
    if (now.control === undefined) continue;
    assert.ok(now.seen, `no focus to be seen on ${now.name}`);
    reached.add(Number(now.control));
  }
  const missing = wanted.filter((_, i) => !reached.has(i));
  assert.deepEqual(missing, []);
  it.still = false;
});

test("Curves are read, moved along and zoomed by keyboard", options, async () => {
  const page = await openPage(it.browser, it.address);
  await showAll(page);
  const plot = page.locator("#losses [role=slider]").first();
  await plot.focus();
  await page.keyboard.press("ArrowLeft");
  const first = await plot.getAttribute("aria-valuetext");
  assert.match(first, /^step .*: d_real .*, d_fake .*, g /);
  for (let i = 0; i < 5; ++i) await page.keyboard.press("ArrowLeft");
  assert.notEqual(await plot.getAttribute("aria-valuetext"), first);
  const all = page.getByRole("button", { name: "Show all" });
  assert.ok(await all.isDisabled());
  await page.keyboard.press("+");
  await page.keyboard.press("+");
  assert.ok(await all.isEnabled());
  await keep(page, "zoomed-1440");
  await page.keyboard.press("Shift+ArrowLeft");
  await page.keyboard.press("0");
  assert.ok(await all.isDisabled());
  assert.match(await page.locator("#losses .for-readers").first().textContent(),
    /^generation, weight 3 over steps .* d_real now .*, between .* and/);
});

test("A stretch is zoomed into with the mouse, on all curves", options, async () => {
  it.still = true;
  const page = await openPage(it.browser, it.address);
  await showAll(page);
  const plots = page.locator("#losses .u-over");
  const box = await plots.first().boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 60, { steps: 5 });
  await page.mouse.up();
  assert.ok(await page.getByRole("button", { name: "Show all" }).isEnabled());
  await page.locator("#losses select").first().selectOption("time");
  await page.waitForFunction(() => /^\d\d:\d\d:\d\d:/.test(
    document.querySelector("#losses [role=slider]").getAttribute("aria-valuetext")));
  it.still = false;
});

test("The choice of colours is remembered", options, async () => {
  const page = await openPage(it.browser, it.address);
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  assert.equal(await theme(), "light");
  await page.getByLabel("Colours").selectOption("dark");
  assert.equal(await theme(), "dark");
  await page.reload();
  await page.waitForSelector("body[data-ready=true]");
  assert.equal(await theme(), "dark");
});
