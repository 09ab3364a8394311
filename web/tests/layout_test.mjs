import assert from "node:assert/strict";
import { test } from "node:test";

import { keep, openPage, showAll } from "./browser.mjs";
import { fixture } from "./fixture.mjs";

const it = fixture();
const options = { timeout: 900_000 };

for (const width of [320, 390, 768, 1100, 1440, 1920, 3840]) {
  for (const hash of ["", "#runs=0,1"]) {
    test(`Nothing scrolls sideways at ${width} pixels${hash ? ", two runs" : ""}`, options, async () => {
      const page = await openPage(it.browser, it.address + hash, { width, scheme: hash ? "light" : "dark" });
      await showAll(page);
      await page.evaluate(() => document.querySelectorAll("details").forEach((d) => (d.open = true)));
      await showAll(page);
      const wide = await page.evaluate(() => {
        const limit = document.documentElement.clientWidth;
        const inScroll = (e) => e.parentElement?.closest(".scroll, .waits, .for-readers, .site, .runs, .tools");
        return { page: document.documentElement.scrollWidth, limit,
          beyond: [...document.querySelectorAll("body *")].filter((e) => !inScroll(e) &&
            e.getBoundingClientRect().right > limit + 1 && !e.closest(".for-readers, .u-wrap, svg"))
            .map((e) => `${e.tagName}.${e.className}`) };
      });
      assert.deepEqual(wide.beyond, []);
      assert.ok(wide.page <= wide.limit, `${wide.page} > ${wide.limit}`);
      await page.evaluate(() => document.querySelectorAll("details").forEach((d) => (d.open = false)));
      await showAll(page);
      await keep(page, `${hash ? "two-runs-light" : "dark"}-${width}`);
    });
  }
}

test("No request leaves the host, and nothing is asked for that is not there", options, async () => {
  const page = await openPage(it.browser, it.address);
  const failed = [];
  page.on("response", (response) => response.status() >= 400 && failed.push(response.url()));
  await showAll(page);
  await page.waitForFunction(() => Number(document.querySelector(".stage canvas").dataset.painted) > 0);
  const hosts = new Set(page.requests.map((url) => new URL(url).host));
  assert.deepEqual([...hosts], [new URL(it.address).host]);
  assert.deepEqual(failed, []);
  assert.deepEqual(page.errors, []);
});
