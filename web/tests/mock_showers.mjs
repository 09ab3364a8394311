// Made-up showers of an electromagnetic calorimeter, 25 x 25 x 25, as docs/watching.md has them:
// gamma-like along z, exponential across. `quality` from 0 (noise) to 1 (as the data).

import { Random } from "./mock_random.mjs";

const SIDE = 25;
const EVENTS = 8;

function shower(random, energy, quality, angle) {
  const cells = new Map();
  const shift = (1 - quality) * 4;
  const spread = 1 + (1 - quality) * 1.5;
  const total = 0.02 * energy * (1 + 0.05 * random.gauss()) * (0.6 + 0.4 * quality);
  const hits = 900;
  for (let i = 0; i < hits; ++i) {
    let depth = 0;
    for (let k = 0; k < 4; ++k) depth -= 1.9 * Math.log(1 - random.next());
    const radius = -0.9 * spread * Math.log(1 - random.next());
    const phi = 2 * Math.PI * random.next();
    const x = Math.floor(12.5 + radius * Math.cos(phi) + (angle === null ? 0 : (depth - 8) * Math.cos(angle)));
    const y = Math.floor(12.5 + radius * Math.sin(phi));
    const z = Math.floor(depth + shift);
    if (Math.min(x, y, z) < 0 || Math.max(x, y, z) >= SIDE) continue;
    const cell = (x * SIDE + y) * SIDE + z;
    cells.set(cell, (cells.get(cell) ?? 0) + (total / hits) * (0.4 + 1.2 * random.next()));
  }
  const sorted = [...cells].sort((a, b) => b[1] - a[1]);
  return {
    total: sorted.reduce((sum, [, gev]) => sum + gev, 0),
    cells: sorted.map(([cell]) => cell), gev: sorted.map(([, gev]) => Number(gev.toPrecision(4))),
  };
}

function profile(showers, axis) {
  const sums = new Array(SIDE).fill(0);
  for (const { cells, gev } of showers) {
    cells.forEach((cell, i) => {
      const at = [Math.floor(cell / SIDE / SIDE), Math.floor(cell / SIDE) % SIDE, cell % SIDE][axis];
      sums[at] += gev[i] / showers.length;
    });
  }
  return sums;
}

function histogram(name, low, high, bins, data, generated) {
  const fill = (values) => {
    const counts = new Array(bins).fill(0);
    for (const v of values) {
      const bin = Math.floor(((v - low) / (high - low)) * bins);
      if (bin >= 0 && bin < bins) ++counts[bin];
    }
    return counts;
  };
  return { name, low, high, data: fill(data), generated: fill(generated) };
}

export function makeShowers(step, quality, seed = 7) {
  const random = new Random(seed + step);
  const fixed = new Random(99);
  const events = Array.from({ length: 40 }, (_, i) => {
    const energy = [100, 250, 50, 400, 10, 150, 300, 200][i % 8];
    return { energy, angle: null, data: shower(fixed, energy, 1, null),
      generated: shower(random, energy, quality, null) };
  });
  const [data, generated] = ["data", "generated"].map((key) => events.map((event) => event[key]));
  const profiles = {};
  ["x", "y", "z"].forEach((name, axis) => {
    profiles[name] = { data: profile(data, axis), generated: profile(generated, axis) };
  });
  const fraction = (key) => events.flatMap((e) => Array.from({ length: 12 }, () =>
    e[key].total / e.energy * (1 + 0.03 * random.gauss())));
  const hits = (key) => events.flatMap((e) => Array.from({ length: 12 }, () =>
    e[key].cells.length * (1 + 0.04 * random.gauss())));
  return {
    step, space: [SIDE, SIDE, SIDE], profiles,
    histograms: [
      histogram("ecal / primary energy", 0, 0.04, 40, fraction("data"), fraction("generated")),
      histogram("cells hit", 0, 800, 40, hits("data"), hits("generated")),
    ],
    events: events.slice(0, EVENTS),
  };
}
