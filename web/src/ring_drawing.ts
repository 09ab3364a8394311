// The reducers' ring as a circle: members told apart by shape and word, links filled as far as
// their credits are out.

import { draw } from "./elements.ts";
import type { Link, RunNode } from "./protocol.ts";

const MOST = 64;

export interface RingLink {
  from: RunNode;
  to: RunNode;
  link: Link;
}

// Shapes: a full circle takes part, an empty one is not in it yet, a square has ended, a cross is dead.
export function nodeShape(state: string, x: number, y: number, r: number): SVGElement {
  if (state === "dead") {
    return draw("path", { class: "shape dead",
      d: `M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}` });
  }
  if (state === "ended") {
    return draw("rect", { class: "shape ended", x: x - r, y: y - r, width: 2 * r, height: 2 * r });
  }
  return draw("circle", { class: `shape ${state === "running" ? "running" : "joining"}`, cx: x, cy: y, r });
}

// The link that each reducer sends most on: these are the links of the present ring, not of earlier
// ones.
export function ringLinks(nodes: readonly RunNode[], sentBefore: Map<string, number>): RingLink[] {
  const home = new Map(nodes.flatMap((node) => node.actors.map((actor) => [actor.name, node])));
  const result: RingLink[] = [];
  for (const node of nodes) {
    if (node.state !== "running") continue;
    let best: RingLink | undefined;
    let most = -1;
    for (const link of node.links) {
      if (link.port !== "ring") continue;
      const to = home.get(link.to);
      if (!to || to === node || to.state === "dead" || to.state === "ended") continue;
      const lately = link.sent - (sentBefore.get(`${link.from}>${link.to}`) ?? 0) + link.in_use * 1e-3;
      if (lately > most) [best, most] = [{ from: node, to, link }, lately];
    }
    if (best) result.push(best);
  }
  return result;
}

// In the order of the ring, those that are in none behind.
export function ringOrder(nodes: readonly RunNode[], links: readonly RingLink[]): RunNode[] {
  const next = new Map(links.map(({ from, to }) => [from, to]));
  const order: RunNode[] = [];
  const add = (node: RunNode | undefined): void => {
    for (let at = node; at && !order.includes(at); at = next.get(at)) order.push(at);
  };
  for (const node of nodes) if (next.has(node)) add(node);
  for (const node of nodes) add(node);
  return order;
}

export function drawRing(nodes: readonly RunNode[], links: readonly RingLink[], width: number):
    SVGSVGElement {
  const order = ringOrder(nodes, links).slice(0, MOST);
  const size = Math.min(width, 440);
  const height = size * 0.86;
  const svg = draw("svg", { width: size, height, viewBox: `0 0 ${size} ${height}`,
    "aria-hidden": "true", class: "ring" });
  const [cx, cy] = [size / 2, height / 2];
  const [rx, ry] = [size / 2 - 74, height / 2 - 38];
  const place = new Map(order.map((node, i) => {
    const angle = (2 * Math.PI * i) / order.length - Math.PI / 2;
    return [node, { angle, x: cx + rx * Math.cos(angle), y: cy + ry * Math.sin(angle) }];
  }));
  for (const { from, to, link } of links) {
    const [a, b] = [place.get(from), place.get(to)];
    if (!a || !b) continue;
    // Two members' links would lie upon each other if they were straight.
    const bend = order.length === 2 ? 0.32 : 0.1;
    const [mx, my] = [(a.x + b.x) / 2, (a.y + b.y) / 2];
    const [qx, qy] = [mx + (b.y - a.y) * bend, my - (b.x - a.x) * bend];
    const path = `M${a.x} ${a.y}Q${qx} ${qy} ${b.x} ${b.y}`;
    const full = link.credits > 0 ? Math.min(1, link.in_use / link.credits) : 0;
    svg.append(draw("path", { class: "edge", d: path }),
      draw("path", { class: "edge fill", d: path, pathLength: 100,
        "stroke-dasharray": `${(100 * full).toFixed(1)} 200` }));
    if (order.length <= 12) {
      svg.append(draw("text", { class: "credits", x: (mx + qx) / 2, y: (my + qy) / 2 + 4,
        "text-anchor": "middle" }, `${link.in_use}/${link.credits}`));
    }
  }
  const labels = order.length <= 24;
  for (const [node, { angle, x, y }] of place) {
    svg.append(draw("circle", { class: "ground", cx: x, cy: y, r: 11 }), nodeShape(node.state, x, y, 7));
    if (!labels) continue;
    const [out, up] = [Math.cos(angle), Math.sin(angle)];
    const anchor = Math.abs(out) < 0.3 ? "middle" : out > 0 ? "start" : "end";
    const [lx, ly] = [x + 15 * (Math.abs(out) < 0.3 ? 0 : Math.sign(out)),
      y + (Math.abs(out) < 0.3 ? (up > 0 ? 22 : -22) : -1)];
    svg.append(draw("text", { x: lx, y: ly, "text-anchor": anchor }, node.name),
      draw("text", { class: "word", x: lx, y: ly + 13, "text-anchor": anchor },
        node.state === "running" ? "" : node.state));
  }
  return svg;
}
