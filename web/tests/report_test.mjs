// The report of `troupe validate`: one file that needs nothing else, in light and dark and on paper.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { keep, launch } from "./browser.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const options = { timeout: 900_000 };
let folder, browser;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "troupe-report-"));
  const troupe = (...words) => execFileSync(process.env.TROUPE_BINARY, words, { cwd: folder, stdio: "ignore" });
  for (const seed of ["1", "2"]) {
    troupe("data", "make", `${seed}.h5`, "--detector", "lcd-fixed-12", "--events", "300", "--seed", seed,
      "--min-energy", seed === "1" ? "10" : "30", "--max-energy", "100");
  }
  troupe("validate", "2.h5", "--against", "1.h5", "--replicas", "30", "--report", "report.html");
  // A checkpoint of a model with angles, whose discriminator is asked too.
  const settings = ["data.synthetic.events=30", "train.micro_batch=2", "train.micro_batches=1", "train.iterations=1",
    "actors.replica.count=1", "actors.validator.every=none"];
  troupe("run", "gan3d_51", ...settings.flatMap((setting) => ["--set", setting]), "--out", "angles");
  troupe("data", "make", "angles.h5", "--detector", "lcd-angle-51", "--events", "60");
  troupe("validate", "angles", "--latest", "--against", "angles.h5", "--replicas", "10", "--report", "angles.html");
  browser = await launch(["flat"]);
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true });
});

async function open(scheme, width, report = "report") {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme });
  const page = await context.newPage();
  page.errors = [];
  page.requests = [];
  page.on("pageerror", (error) => page.errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && page.errors.push(message.text()));
  page.on("request", (request) => page.requests.push(request.url()));
  await page.goto(pathToFileURL(join(folder, `${report}.html`)).href);
  return page;
}

async function hasNothingDrawnThatIsNoNumber(page) {
  const faults = await page.evaluate(() => [...document.querySelectorAll("svg *")].filter((e) =>
    [...e.attributes].some((a) => /nan|inf/i.test(a.value) && a.name !== "aria-label")).length);
  assert.equal(faults, 0);
}

for (const scheme of ["light", "dark"]) {
  for (const [report, width] of [["report", 1440], ["report", 390], ["angles", 390]]) {
    test(`The ${report} page asks for nothing and axe objects to nothing, ${scheme}, ${width} wide`, options, async () => {
      const page = await open(scheme, width, report);
      assert.deepEqual(page.errors, []);
      assert.equal(page.requests.length, 1);
      await page.evaluate(axe);
      const found = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa",
        "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
      assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html)}`), []);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${wide} pixels are beside the screen`);
      await keep(page, `${report}-${scheme}-${width}`);
    });
  }
}

test("The verdict stands above everything, and figures have their floors beside them", options, async () => {
  const page = await open("light", 1440);
  assert.match(await page.locator(".verdict").textContent(), /faults? (was|were) found/);
  assert.match(await page.locator("main ul li").first().textContent(), /the primaries have other energies/);
  assert.ok((await page.locator("figure svg").count()) > 25);
  const first = page.locator("tbody tr").first();
  assert.match(await first.textContent(), /mean response.*1 \+- 0\.00/);
  await hasNothingDrawnThatIsNoNumber(page);
});

test("A model with angles has plots by angle, and says what its discriminator says", options, async () => {
  const page = await open("light", 1440, "angles");
  const sections = await page.locator("h2").allTextContents();
  for (const section of ["By energy", "By angle", "What the discriminator says"]) assert.ok(sections.includes(section));
  assert.equal(await page.locator("figcaption", { hasText: /^Longitudinal profile, .* rad/ }).count(), 3);
  await hasNothingDrawnThatIsNoNumber(page);
});

test("It prints, in dark as in light", options, async () => {
  const page = await open("dark", 1440);
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  const colours = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(colours, "rgb(255, 255, 255)");
  const pdf = await page.pdf({ format: "A4" });
  assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
  assert.ok(pdf.length > 50_000);
});
