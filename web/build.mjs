// Makes the page: node build.mjs OUTPUT_FOLDER. Checks types, bundles src/ and style/, names files
// by their content, and writes page/ (what a browser gets) and page_assets.cpp (the same, packed,
// as the program holds it). Any failure ends it with a status of 1.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

import { source } from "./embed.mjs";

// The bytes that a phone may have to load over a slow line.
const MOST_BYTES = 250_000;
const TYPES = {
  ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
};

const here = dirname(fileURLToPath(import.meta.url));
const output = process.argv[2] && resolve(process.argv[2]);
if (!output) throw new Error("usage: node build.mjs OUTPUT_FOLDER");
const page = join(output, "page");

function checkTypes() {
  const compiler = createRequire(import.meta.url).resolve("typescript/package.json");
  const { status } = spawnSync(process.execPath, [join(dirname(compiler), "bin", "tsc"), "-p", here],
    { stdio: "inherit" });
  if (status !== 0) process.exit(1);
}

// The licences of what is bundled go with it.
function notices() {
  return ["uplot", "three"].map((name) => {
    const folder = join(here, "node_modules", name);
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return `${name} ${version}\n\n${readFileSync(join(folder, "LICENSE"), "utf8")}`;
  }).join("\n\n");
}

async function bundle() {
  const result = await build({
    absWorkingDir: here,
    entryPoints: { main: "src/main.ts", page: "style/page.css" },
    outdir: page,
    bundle: true, splitting: true, format: "esm", minify: true, metafile: true,
    target: ["es2022", "chrome109", "firefox115", "safari16.4"],
    entryNames: "[name]-[hash]", chunkNames: "[name]-[hash]",
    legalComments: "none", logLevel: "warning",
  });
  const names = new Map();
  for (const [path, made] of Object.entries(result.metafile.outputs)) {
    const name = relative(page, join(here, path));
    if (made.entryPoint === "src/main.ts") names.set("main.js", name);
    if (made.entryPoint === "style/page.css") names.set("page.css", name);
  }
  const icon = readFileSync(join(here, "icon.svg"));
  names.set("icon.svg", `icon-${digest(icon).slice(0, 8)}.svg`);
  writeFileSync(join(page, names.get("icon.svg")), icon);
  let html = readFileSync(join(here, "index.html"), "utf8");
  for (const [plain, hashed] of names) {
    if (!html.includes(`"${plain}"`)) throw new Error(`index.html does not mention ${plain}`);
    html = html.replace(`"${plain}"`, `"/${hashed}"`);
  }
  writeFileSync(join(page, "index.html"), html);
  writeFileSync(join(page, "licences.txt"), notices());
}

function digest(content) {
  return createHash("sha256").update(content).digest("hex");
}

function assets() {
  return readdirSync(page).map((name) => {
    const content = readFileSync(join(page, name));
    return {
      path: name === "index.html" ? "/" : `/${name}`,
      type: TYPES[extname(name)],
      etag: `"${digest(content).slice(0, 16)}"`,
      gzip: gzipSync(content, { level: 9 }),
      bytes: content.length,
    };
  }).sort((a, b) => (a.path < b.path ? -1 : 1));
}

checkTypes();
rmSync(page, { recursive: true, force: true });
mkdirSync(page, { recursive: true });
await bundle();
const made = assets();
const total = made.reduce((sum, asset) => sum + asset.gzip.length, 0);
for (const asset of made) {
  console.log(`  ${asset.path.padEnd(32)} ${String(asset.bytes).padStart(7)} bytes, ${String(asset.gzip.length).padStart(6)} packed`);
}
console.log(`  the page weighs ${total} bytes packed, of ${MOST_BYTES} that it may`);
if (total > MOST_BYTES) {
  console.error("the page is too heavy");
  process.exit(1);
}
// This file is written last, as the build takes it as the sign of a whole page.
writeFileSync(join(output, "page_assets.cpp"), source(made));
