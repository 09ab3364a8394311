import assert from "node:assert/strict";
import { test } from "node:test";

import { keep, openPage, points, showAll } from "./browser.mjs";
import { fixture } from "./fixture.mjs";
import { MockRun } from "./mock_run.mjs";

const it = fixture();
const options = { timeout: 900_000 };

test("The page shows a run that trains, and its curves move", options, async () => {
  const page = await openPage(it.browser, it.address);
  await showAll(page);
  assert.equal(await page.textContent(".run h2"), "gan3d_25-night");
  assert.equal(await page.textContent(".run .state"), "training");
  assert.equal(await page.textContent(".run .link"), "live");
  const before = await points(page);
  assert.ok(before > 1000);
  await page.waitForFunction((n) => [...document.querySelectorAll("#losses .chart")]
    .reduce((sum, chart) => sum + Number(chart.dataset.points), 0) > n, before);
  const charts = await page.locator("#losses .chart h3").allTextContents();
  assert.deepEqual(charts, ["generation, weight 3", "auxiliary, weight 0.1", "ecal, weight 0.1"]);
  assert.match(await page.textContent("#happened"), /member\.1 was lost/);
  assert.match(await page.textContent("#log"), /was killed by signal 9/);
  assert.deepEqual(page.errors, []);
  await keep(page, "light-1440");
});

test("A member dies and another joins, and the page shows both without being loaded anew", options,
  async () => {
    const page = await openPage(it.browser, it.address);
    await page.locator("#graph").scrollIntoViewIfNeeded();
    const state = (name) => page.locator(".node", { hasText: name }).first().getAttribute("data-state");
    await page.waitForSelector(".node");
    assert.equal(await state("member.2"), "running");
    it.run.kill("member.2");
    await page.waitForFunction(() => [...document.querySelectorAll(".node")]
      .some((n) => n.textContent.includes("member.2") && n.dataset.state === "dead"));
    assert.match(await page.locator(".node", { hasText: "member.2" }).first().textContent(),
      /was killed by signal 9/);
    // Told in words and by shape as well.
    assert.equal(await page.locator(".node", { hasText: "member.2" }).first().locator("svg .dead").count(), 1);
    it.run.addMember("member.7");
    await page.waitForFunction(() => [...document.querySelectorAll(".node")]
      .some((n) => n.textContent.includes("member.7") && n.dataset.state === "running"));
    await page.waitForFunction(() => /member\.7 has joined/.test(document.querySelector("[aria-live]").textContent));
    await page.waitForFunction(() => /member\.7 has joined/.test(document.querySelector("#happened").textContent));
  });

test("A server that goes away is told at once, the curves stay, and it is back by itself", options,
  async () => {
    const page = await openPage(it.browser, it.address);
    await page.waitForFunction(() => document.querySelector(".run .link").textContent === "live");
    const before = await points(page);
    const resumed = it.server.resumed;
    it.still = true;
    await it.server.stop();
    await page.waitForFunction(() => /^reconnecting since/.test(document.querySelector(".run .link").textContent));
    assert.ok(await points(page) >= before);
    await keep(page, "lost-1440");
    it.run.advance(5, 0.5);
    await it.server.start(it.server.port);
    await page.waitForFunction(() => /^back after .* points caught up$/.test(document.querySelector(".run .link").textContent));
    assert.match(await page.textContent(".run .link"), /20 points caught up/);
    assert.ok(it.server.resumed > resumed, "it did not go on from where it was");
    it.still = false;
  });

test("A page whose server refuses it for a while tries again", options, async () => {
  const page = await openPage(it.browser, it.address);
  const real = it.server.stream;
  let refused = 0;
  it.server.stream = (_request, response) => {
    ++refused;
    response.writeHead(503).end();
  };
  for (const stream of it.server.streams) stream.response.destroy();
  await page.waitForFunction(() => /^reconnecting/.test(document.querySelector(".run .link").textContent));
  while (refused < 2) await new Promise((done) => setTimeout(done, 100));
  it.server.stream = real;
  await page.waitForFunction(() => /^(back|live)/.test(document.querySelector(".run .link").textContent));
});

test("Two runs are compared: curves of both with their names, and a header each", options, async () => {
  const page = await openPage(it.browser, it.address);
  await page.locator(".choices input").nth(1).check();
  await page.waitForFunction(() => document.querySelectorAll("article.run").length === 2);
  await showAll(page);
  assert.deepEqual(await page.locator("article.run h2").allTextContents(),
    ["gan3d_25-night", "gan3d_25-two-workers"]);
  await page.waitForFunction(() => document.querySelector("#losses .legend").children.length === 6);
  const legend = await page.locator("#losses .legend").first().textContent();
  assert.match(legend, /gan3d_25-night g/);
  assert.match(legend, /gan3d_25-two-workers g/);
  assert.match(await page.textContent("#physics"), /gan3d_25-two-workers: validation of step 2.400/);
  await page.waitForFunction(() => document.querySelectorAll("#physics .captions .legend li").length === 3);
  // The address names the compared runs, so that it can be sent to someone.
  assert.match(page.url(), /#runs=0,1$/);
  await keep(page, "compare-1440");
  const second = await openPage(it.browser, `${it.address}#runs=1`);
  assert.deepEqual(await second.locator("article.run h2").allTextContents(), ["gan3d_25-two-workers"]);
});

test("A run that is over looks so", options, async () => {
  const page = await openPage(it.browser, `${it.address}#runs=1`);
  await showAll(page);
  assert.equal(await page.textContent(".run .state"), "finished");
  assert.equal(await page.textContent(".run .link"), "complete");
  assert.equal(await page.getAttribute("article.run", "data-state"), "ended");
  assert.match(await page.textContent("#questions"), /is over/);
  await keep(page, "finished-1440");
});

test("A run that was stopped amid an epoch tells of that epoch", options, async () => {
  const run = new MockRun({ name: "stopped", iterations: 200 });
  run.advance(70);
  run.end("stopped", "");
  it.runs.push({ run, folder: "runs/stopped", live: false });
  const page = await openPage(it.browser, `${it.address}#runs=${it.runs.length - 1}`);
  assert.equal(await page.textContent(".run .state"), "stopped");
  assert.match(await page.textContent(".glance"), /Epoch2 of 4Iteration70 of 200/);
});

test("A figure of merit of showers that are nothing like the data is marked, and may be the best", options, async () => {
  const run = new MockRun({ name: "noise" });
  run.advance(150);
  const [first, second, last] = run.validations.map((one) => one.rows.at(-1).comparison);
  Object.assign(first, { merit: { total: 0.5 }, unlike: [] });
  Object.assign(second, { merit: { total: 0.2 }, unlike: ["hits"] });
  Object.assign(last, { merit: { total: 0.3 }, unlike: ["response", "transverse"] });
  it.runs.push({ run, folder: "runs/noise", live: false });
  const page = await openPage(it.browser, `${it.address}#runs=${it.runs.length - 1}`);
  await page.waitForFunction(() => /Best so far/.test(document.querySelector(".glance")?.textContent));
  assert.match(await page.textContent(".glance"), /Figure of merit0\.300 !Best so far0\.200/);
  assert.equal(await page.textContent(".glance .warn dt"), "Figure of merit");
  assert.match(await page.innerText(".run .unlike"), /nothing like the data \(response, transverse\)/);
  assert.match(await page.innerText("#merit .warning"), /2 of 3 validations/);
  await keep(page, "unlike-1440", false);
  await page.goto(`${it.address}#runs=0`);
  await page.reload();
  await page.waitForFunction(() => /Best so far/.test(document.querySelector(".glance")?.textContent));
  for (const warning of [".run .unlike", "#merit .warning"]) assert.ok(await page.locator(warning).isHidden(), warning);
});

test("The best so far is that of the figure that chooses it, and has a curve", options, async () => {
  const run = new MockRun({ name: "chosen" });
  run.advance(150);
  run.validations.forEach((one, i) => {
    one.rows.at(-1).comparison.unlike = [];
    one.rows.at(-1).chosen = { figure: "response_energy", title: "error of the response", unit: "%",
      value: [3, 1.5, 2][i], distance: [3, 1.5, 2][i] };
  });
  it.runs.push({ run, folder: "runs/chosen", live: false });
  const page = await openPage(it.browser, `${it.address}#runs=${it.runs.length - 1}`);
  await page.waitForFunction(() => /Best so far/.test(document.querySelector(".glance")?.textContent));
  assert.match(await page.textContent(".glance"),
    /Best so far1\.50? % \(error of the response\)Response/);
  await showAll(page);
  assert.match(await page.textContent("#merit"), /Distance of the error of the response/);
  await page.goto(`${it.address}#runs=0`);
  await page.reload();
  await page.waitForFunction(() => /Best so far/.test(document.querySelector(".glance")?.textContent));
  assert.doesNotMatch(await page.textContent(".glance"), /error of the response/);
});

test("What a classifier finds of images stands in the table by its names", options, async () => {
  const run = new MockRun({ name: "judged" });
  run.advance(150);
  for (const one of run.validations) {
    one.rows = [{ name: "data", events: 2000, comparison: null, floor: { judge_frechet: 0.25, judge_confidence: 99.4 } },
      { name: "generated", events: 2000, comparison: { judge_frechet: 12.5, judge_confidence: 91.2 }, floor: null,
        chosen: { figure: "judge_frechet", title: "Frechet distance of the judge's features", unit: "", value: 12.5,
          distance: 12.5 } }];
  }
  it.runs.push({ run, folder: "runs/judged", live: false });
  const page = await openPage(it.browser, `${it.address}#runs=${it.runs.length - 1}`);
  await page.waitForFunction(() => /Best so far/.test(document.querySelector(".glance")?.textContent));
  await page.locator("#physics").scrollIntoViewIfNeeded();
  await page.waitForSelector(".errors table.figures");
  assert.match(await page.textContent(".glance"), /Best so far12\.5\d* \(Frechet distance/);
  assert.match(await page.textContent(".errors table.figures"),
    /SampleEventsjudge frechetjudge confidencedata2\D?0000\.25\d*99\.4\d*generated2\D?00012\.5\d*91\.2/);
  await page.locator("#merit").scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.querySelector("#merit")?.textContent.includes("Distance of the Frechet"));
  assert.deepEqual(await page.locator("#merit .chart").evaluateAll((all) => all.map((one) => one.hidden)), [true, false]);
});

test("Who waits for whom is asked for, and the trace can be saved", options, async () => {
  const page = await openPage(it.browser, it.address);
  await page.locator("#questions").scrollIntoViewIfNeeded();
  await page.getByRole("button", { name: "What waits for what" }).click();
  await page.waitForSelector(".waits:not([hidden])");
  assert.match(await page.textContent(".waits"), /replica\.0 waits for reducer\.0/);
  const [download] = await Promise.all([page.waitForEvent("download"),
    page.getByRole("link", { name: "Download trace" }).click()]);
  assert.equal(download.suggestedFilename(), "gan3d_25-night-trace.json");
});

test("Log lines are filtered by level, and followed unless somebody has scrolled up", options, async () => {
  const page = await openPage(it.browser, it.address);
  await page.locator("#log").scrollIntoViewIfNeeded();
  for (let i = 0; i < 60; ++i) it.run.tell("info", `line ${i}`);
  await page.waitForFunction(() => /line 59/.test(document.querySelector("#log").textContent));
  const atEnd = () => page.evaluate(() => {
    const box = document.querySelector(".log-lines");
    return box.scrollTop + box.clientHeight >= box.scrollHeight - 24;
  });
  assert.ok(await atEnd());
  await page.evaluate(() => document.querySelector(".log-lines").scrollTo(0, 0));
  await page.waitForSelector("#log button:not([hidden])");
  it.run.tell("info", "another line");
  await page.waitForFunction(() => /another line/.test(document.querySelector("#log").textContent));
  assert.ok(!(await atEnd()));
  await page.getByRole("button", { name: "Follow" }).click();
  await page.waitForFunction(() => document.querySelector("#log .tools button").hidden);
  await page.locator("#log select").selectOption("1");
  await page.waitForFunction(() => !/line 59/.test(document.querySelector("#log").textContent));
  assert.match(await page.textContent("#log"), /was lost/);
});

test("The table of actors is sorted and shows one node alone", options, async () => {
  const page = await openPage(it.browser, it.address);
  await page.locator("#actors").scrollIntoViewIfNeeded();
  await page.waitForSelector("#actors tbody tr");
  await page.getByRole("button", { name: "Handled" }).click();
  assert.equal(await page.locator("#actors th", { hasText: "Handled" }).getAttribute("aria-sort"), "descending");
  const handled = await page.evaluate(() => [...document.querySelectorAll("#actors tbody tr")]
    .map((row) => Number(row.cells[4].textContent.replace(/\D/g, ""))));
  assert.deepEqual(handled, [...handled].sort((a, b) => b - a));
  await page.locator("#actors select").selectOption("head");
  await page.waitForFunction(() => document.querySelectorAll("#actors tbody tr").length === 5);
});

test("What pools have cost and will cost stands with the pace", options, async () => {
  const page = await openPage(it.browser, it.address);
  await page.locator("#pace").scrollIntoViewIfNeeded();
  const figure = async (name) =>
    (await page.locator("#pace dt", { hasText: name }).locator("xpath=..").locator("dd").textContent());
  await page.locator("#pace dt", { hasText: "Pool hpc" }).waitFor();
  assert.equal(await figure("Pool hpc"), "3 of 4 nodes, 1.50 h, 0.7500");
  assert.equal(await figure("Pools an epoch"), "0.2500");
  assert.equal(await figure("Pools at the end"), "1.500 (at first 1.250)");
});

test("Whoever has the token changes how many nodes a pool shall have, and hears the answer", options, async () => {
  const page = await openPage(it.browser, it.address);
  const control = page.getByRole("group", { name: "Nodes of pools" });
  await control.scrollIntoViewIfNeeded();
  const nodes = control.getByLabel("Nodes of hpc");
  const says = (text) => control.getByRole("status").filter({ hasText: text }).waitFor();
  assert.equal(await nodes.inputValue(), "4");
  assert.equal(await nodes.getAttribute("max"), "16");
  // By keyboard alone.
  await nodes.focus();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await says("the token for changes is needed");
  assert.equal(await nodes.inputValue(), "5", "what was written has to stay");
  await control.getByLabel("Token for changes").fill(it.server.control);
  await control.getByRole("button", { name: "Change hpc" }).click();
  await says("pool hpc: 5 nodes are wanted, 4 before");
  await page.locator("#pace dd", { hasText: "3 of 5 nodes" }).waitFor();
  await keep(page, "control-1440");
  // What the pool has not is not asked for, and stays where others change the pool.
  await nodes.fill("17");
  await nodes.press("Enter");
  assert.equal(await nodes.evaluate((input) => input.validity.rangeOverflow), true);
  assert.equal(page.requests.filter((url) => url.endsWith("/burst")).length, 2);
  it.run.bill.pools[0].wanted = 2;
  ++it.run.version;
  await page.locator("#pace dd", { hasText: "3 of 2 nodes" }).waitFor();
  assert.equal(await nodes.inputValue(), "17");
  // The token outlives the page and not the tab, and no address has it.
  await page.reload();
  assert.equal(await control.getByLabel("Token for changes").inputValue(), it.server.control);
  await page.waitForFunction(() => document.querySelector(".pool-control input").value === "2");
  assert.deepEqual(page.requests.filter((url) => /secret/.test(decodeURIComponent(url))), []);
  assert.equal(await page.evaluate(() => JSON.stringify(localStorage).includes("secret")), false);
  assert.deepEqual(page.errors, []);
});

test("A run that nobody may change has no control", options, async () => {
  const page = await openPage(it.browser, `${it.address}#runs=1`);
  await showAll(page);
  assert.equal(await page.locator(".pool-control:visible").count(), 0);
});

test("Losses of workers that train alone have a chart for each network", options, async () => {
  const page = await openPage(it.browser, it.address);
  await showAll(page);
  it.run.add("loss/workers/g/generation", 1);
  it.run.add("loss/workers/d/generation", 2);
  await page.waitForFunction(() => {
    const charts = [...document.querySelectorAll("#losses .chart")];
    return ["g/generation", "d/generation"].every((title) => charts.some((chart) =>
      chart.querySelector("h3").textContent === title && Number(chart.dataset.points) > 0));
  });
  assert.deepEqual(page.errors, []);
});
