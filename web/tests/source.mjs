// A module of the page without a browser: for what is decided there from numbers alone.

import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const { build } = createRequire(new URL("../package.json", import.meta.url))("esbuild");

export async function source(name) {
  const made = await build({ entryPoints: [fileURLToPath(new URL(`../src/${name}`, import.meta.url))],
    bundle: true, write: false, format: "esm", logLevel: "warning" });
  return import(`data:text/javascript;base64,${Buffer.from(made.outputFiles[0].contents).toString("base64")}`);
}
