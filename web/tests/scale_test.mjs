import assert from "node:assert/strict";
import { test } from "node:test";

import { source } from "./source.mjs";

const { logTicks, evenTicks, usualRange } = await source("chart_scale.ts");
const { extentOf, outsideText } = await source("chart_extent.ts");
const { placeLabels } = await source("chart_marks.ts");
const { smoothed } = await source("series.ts");
const { duration, tickTexts } = await source("format.ts");

// Numbers around `middle`, the same every time.
const around = (middle, count) => Array.from({ length: count }, (_, i) => middle * (1 + 0.1 * Math.sin(7 * i)));
const curve = (y, more = {}) => ({ label: "", unit: "s", colour: 0, dash: 0, x: y.map((_, i) => i), y, ...more });

test("A few values far from all others are no part of a scale", () => {
  const steps = around(0.1, 300);
  const usual = [Math.min(...steps), Math.max(...steps)];
  const rising = [...steps, 1, 3, 30];
  for (const [what, values, log, wanted] of [
    ["a slow first step", [40, ...steps], false, usual],
    ["two slow steps amid others", [...steps, 40, 30, ...steps], false, usual],
    ["the newest alone", [...steps, 40], false, usual],
    ["one loss of 1e-6 on a logarithmic scale", [...steps, 1e-6, ...steps], true, usual],
    ["zeros have no place on a logarithmic scale", [0, 0, ...steps], true, usual],
    ["but what is not so far away is", [0.3, ...steps], false, [usual[0], 0.3]],
    ["what is frequent is", [...around(4, 20), ...steps], false, [usual[0], Math.max(...around(4, 20))]],
    ["a curve that has begun to rise is", rising, false, [usual[0], 3]],
    ["of few values all are", [40, ...steps.slice(0, 8)], false, [Math.min(...steps.slice(0, 8)), 40]],
    ["values that are all the same", around(0, 50), false, [0, 0]],
    ["values that are all the same but one", [...around(0, 50), 7, 0, 0], false, [0, 7]],
  ]) {
    assert.deepEqual(usualRange(values, log).map(Number), wanted, what);
  }
  assert.equal(usualRange([], false), null);
  assert.equal(usualRange([NaN, Infinity], false), null);
  assert.equal(usualRange([-1, 0], true), null);
});

test("A curve that falls over decades is shown whole on a logarithmic scale", () => {
  const falling = Array.from({ length: 500 }, (_, i) => 100 * Math.exp(-i / 25));
  assert.deepEqual(usualRange(falling, true), [falling[499], 100]);
});

test("What lies outside of a scale is counted and told with its value", () => {
  const told = (curves, view, log = false) =>
    outsideText(extentOf(curves, view, log, 0.07), (v) => duration(v));
  const slow = curve([40, ...around(0.1, 99)]);
  assert.equal(told([slow], [0, 99]), "▲ 1 point above the scale, at 40 s");
  assert.equal(told([slow], [1, 99]), "", "zoomed to where all is well");
  assert.equal(told([slow, curve(slow.y)], [0, 99]), "▲ 1 point above the scale, at 40 s", "two curves, one step");
  assert.equal(told([curve([40, 50, ...around(0.1, 98)])], [0, 99]), "▲ 2 points above the scale, up to 50 s");
  const band = { low: around(0.09, 100), high: [40, ...around(0.11, 99)] };
  assert.equal(told([curve(around(0.1, 100), band)], [0, 99]), "▲ 1 point above the scale, at 40 s");
  assert.match(told([curve([...around(0.1, 50), 0, ...around(0.1, 49)])], [0, 99], true), /▼ 1 point below/);
  assert.equal(told([], [0, 1]), "");
});

test("A slow step is smoothed into no other, and stays what it was", () => {
  const values = [40, ...around(0.1, 200)];
  const smooth = smoothed(values, 25);
  assert.equal(smooth[0], 40);
  assert.ok(Math.max(...smooth.slice(1)) < 0.12, String(Math.max(...smooth.slice(1))));
});

test("Ticks have the digits that tell them apart, and a power of ten where they are small", () => {
  const minus = "\u2212";
  for (const [ticks, wanted] of [
    [[0, 5e-7, 1e-6], ["0", `5e${minus}7`, `1e${minus}6`]],
    [[1e-6, 1.0002e-6, 1.0004e-6, 1.0006e-6], [`1e${minus}6`, `1.0002e${minus}6`, `1.0004e${minus}6`, `1.0006e${minus}6`]],
    [evenTicks(0, 2.1e-6, 4), ["0", `1e${minus}6`, `2e${minus}6`]],
    [logTicks(1e-6, 100, 5), [`1e${minus}6`, `1e${minus}4`, "0.01", "1", "100"]],
    [[12345.1, 12345.2], ["12345.1", "12345.2"]],
    [[-0.5, 0, 0.5], [`${minus}0.5`, "0", "0.5"]],
    [[250000, 500000], ["2.5e5", "5e5"]],
    [[], []],
  ]) {
    assert.deepEqual(tickTexts(ticks), wanted);
  }
});

test("Durations go down to microseconds", () => {
  for (const [seconds, wanted] of [[0, "0 ms"], [1.5e-6, "1.50 µs"], [0.0009, "900 µs"], [0.0123, "12.3 ms"],
    [40, "40 s"], [3725, "1 h 02 min"], [null, "–"]]) {
    assert.equal(duration(seconds), wanted);
  }
});

test("Labels stand beside their lines, the newest first, and those without room are left out", () => {
  const at = (xs, widths, end) => placeLabels(xs, widths, 4, end).map((l) => l && [l.begin, l.row]);
  assert.deepEqual(at([10, 200], [50, 50], 400), [[14, 0], [204, 0]]);
  assert.deepEqual(at([10, 40], [50, 50], 400), [[14, 1], [44, 0]], "one above the other");
  assert.deepEqual(at([10, 20, 30], [50, 50, 50], 400), [undefined, [24, 1], [34, 0]]);
  assert.deepEqual(at([380], [50], 400), [[350, 0]], "at the edge");
  assert.deepEqual(at([], [], 400), []);
});
