// Reads the page of a run that trains: node live.mjs ADDRESS [FOLDER].
//
// It loads the page, sees the curves move, and ends with status 0. With a FOLDER it then waits for
// the caller, which reports events by files in it, one after the other:
//   it writes   FOLDER/curves-move   the page is there and its curves move
//   it awaits   FOLDER/lost          the name of a member that the caller has killed: "member.1"
//   it writes   FOLDER/loss-shown    the page shows that member dead
//   it awaits   FOLDER/joined        the name of a member that has joined; empty: none will
//   it writes   FOLDER/join-shown    the page shows it running
//   it awaits   FOLDER/ended         the run has ended and its server still answers; or "gone"
//   it writes   FOLDER/end-shown     the page shows that, or that the server is gone
// Pictures are kept as live-*.png. If an awaited thing does not come within TROUPE_PATIENCE seconds
// (120), it says so and ends with status 1.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { keep, launch, openPage, points, showAll } from "./browser.mjs";

const [address, folder] = process.argv.slice(2);
const patience = 1000 * Number(process.env.TROUPE_PATIENCE ?? 120);

async function await_(what, condition) {
  const end = Date.now() + patience;
  while (Date.now() < end) {
    const found = await condition();
    if (found !== undefined && found !== false) return found;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`waited in vain for ${what}`);
}

const told = (name) => await_(`the file ${name}`, () =>
  existsSync(join(folder, name)) ? readFileSync(join(folder, name), "utf8").trim() : undefined);
const tell = (name) => writeFileSync(join(folder, name), "");

async function shown(page, name, states) {
  await await_(`${name} to be shown as ${states.join(" or ")}`, () => page.evaluate(([wanted, ok]) =>
    [...document.querySelectorAll(".node")].some((node) =>
      node.querySelector("h4").textContent === wanted && ok.includes(node.dataset.state)), [name, states]));
}

async function story(page, asked) {
  const before = await await_("curves", async () => (await points(page)) || undefined);
  console.log(`the first curve is there ${Date.now() - asked} ms after the page was asked for`);
  await showAll(page, false);
  const all = () => page.locator("#losses [role=slider]").first().getAttribute("aria-valuemax").then(Number);
  const step = await all();
  await await_("the curves to move", async () => (await all()) > step);
  console.log(`the page is there: ${before} points, then step ${step} became ${await all()}`);
  await keep(page, "live-training");
  if (!folder) return;
  tell("curves-move");
  const lost = await told("lost");
  await shown(page, lost, ["dead"]);
  await await_("the mark of the loss", () => page.evaluate((name) =>
    document.querySelector(".marks").textContent.includes(name), lost));
  console.log(`${lost} is shown dead`);
  await keep(page, "live-lost");
  tell("loss-shown");
  const joined = await told("joined");
  if (joined) await shown(page, joined, ["running"]);
  await keep(page, "live-joined");
  tell("join-shown");
  const end = await told("ended");
  const text = () => page.locator("article.run .title").textContent();
  await await_("the end to be shown", async () =>
    (end === "gone" ? /reconnecting since|complete/ : /finished|stopped|failed/).test(await text()));
  console.log(`the end is shown: ${await text()}`);
  await keep(page, "live-ended");
  tell("end-shown");
}

const browser = await launch();
try {
  const asked = Date.now();
  const page = await openPage(browser, address);
  await story(page, asked);
  const hosts = new Set(page.requests.map((url) => new URL(url).host));
  if (hosts.size !== 1) throw new Error(`requests went to ${[...hosts].join(", ")}`);
  if (page.errors.length > 0) throw new Error(`errors on the page: ${page.errors.join("; ")}`);
} catch (error) {
  console.error(`live.mjs: ${error.message}`);
  process.exitCode = 1;
} finally {
  await browser.close();
}
