import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

test("No source of the page is longer than 300 lines", () => {
  for (const folder of ["../src", "../style", "."]) {
    const url = new URL(`${folder}/`, import.meta.url);
    for (const name of readdirSync(url).filter((n) => /\.(ts|css|mjs)$/.test(n))) {
      const lines = readFileSync(new URL(name, url), "utf8").split("\n").length;
      assert.ok(lines <= 301, `${name} has ${lines} lines: is it still one noun?`);
    }
  }
});

test("The lock files name versions and hashes, and no registry", () => {
  for (const name of ["../package-lock.json", "package-lock.json"]) {
    const text = readFileSync(new URL(name, import.meta.url), "utf8");
    assert.ok(!text.includes("resolved"), name);
    assert.ok(text.includes("integrity"), name);
  }
});
