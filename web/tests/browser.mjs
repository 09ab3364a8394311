// A browser, and a page in it of which all requests and errors are kept.

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { chromium } from "playwright-core";

// Draws in space without a graphics card.
const DRAW = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
  "--ignore-gpu-blocklist"];

export async function launch(options = []) {
  const root = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({
    executablePath: process.env.TROUPE_CHROMIUM ?? "/usr/bin/chromium", headless: true,
    args: [...root, ...(options.includes("flat") ? ["--disable-3d-apis"] : DRAW)],
  });
}

export async function openPage(browser, address, options = {}) {
  const { width = 1440, height = 900, scheme = "light", phone = false } = options;
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme,
    hasTouch: phone, isMobile: phone, reducedMotion: "reduce" });
  // Long enough for a machine that does much else.
  context.setDefaultTimeout(240_000);
  const page = await context.newPage();
  if (options.texts) await page.addInitScript(keepTexts);
  page.requests = [];
  page.errors = [];
  page.on("request", (request) => page.requests.push(request.url()));
  page.on("pageerror", (error) => page.errors.push(error.message));
  page.on("console", (message) => {
    // A server that is away is part of the tests.
    if (message.type() === "error" && !/net::ERR|Failed to load resource/.test(message.text())) {
      page.errors.push(message.text());
    }
  });
  await page.goto(address);
  await page.waitForSelector("body[data-ready=true]");
  return page;
}

// Remembers where charts wrote which text last: window.texts by the chart's title, then the text, in
// pixels from the top of the chart's canvas.
function keepTexts() {
  const write = CanvasRenderingContext2D.prototype.fillText;
  window.texts = {};
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
    const title = this.canvas.closest(".chart")?.querySelector("h3").textContent;
    if (title) (window.texts[title] ??= {})[text] = y / devicePixelRatio;
    return write.call(this, text, x, y, ...rest);
  };
}

// All panels are in sight and drawn; those of showers too, where there are any.
export async function showAll(page, showers = true) {
  const { width } = page.viewportSize();
  const height = () => page.evaluate(() => document.documentElement.scrollHeight);
  const done = () => page.evaluate((all) => [...document.querySelectorAll("#losses .chart")]
    .some((chart) => Number(chart.dataset.points) > 0) && (!all ||
    (document.querySelectorAll("#physics .comparison svg").length >= 5 &&
      Number(document.querySelector(".stage canvas").dataset.painted) > 0 &&
      Number(document.querySelector("#merit .chart").dataset.points) > 0 &&
      document.querySelector(".node svg rect") !== null)), showers);
  // Panels out of sight are not drawn, and a much higher window gets no frames if the processor
  // draws it. So the page is scrolled past all panels, until everything fetched meanwhile has come.
  for (let pass = 0; pass < 60; ++pass) {
    await page.setViewportSize({ width, height: Math.min(4000, Math.max(600, await height())) });
    for (let y = 0; y < await height(); y += 3500) {
      await page.evaluate((to) => window.scrollTo(0, to), y);
      await page.waitForTimeout(600);
    }
    if (await done()) break;
  }
  await page.evaluate(() => window.scrollTo(0, 0));
  if (!(await done())) throw new Error("not all panels were drawn");
}

export async function keep(page, name, fullPage = true) {
  const folder = process.env.TROUPE_SCREENSHOTS;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage });
}

export async function points(page) {
  return page.evaluate(() => [...document.querySelectorAll("#losses .chart")]
    .reduce((sum, chart) => sum + Number(chart.dataset.points ?? 0), 0));
}
