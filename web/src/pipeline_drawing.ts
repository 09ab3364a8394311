// The inside of a node, from left to right: the actors that read, compute and reduce, and the fill
// of the links between them.

import { draw, make, setText } from "./elements.ts";
import { bytes, duration, figure } from "./format.ts";
import type { Device, Link, RunNode } from "./protocol.ts";
import { nodeShape } from "./ring_drawing.ts";

const ROW = 34;
const BOX = 22;

// Columns by the actors' names; the rest stand below in a row of their own.
function columnOf(actor: string): number {
  return actor.startsWith("loader") ? 0 : actor.startsWith("replica") ? 1
    : actor.startsWith("reducer") ? 2 : -1;
}

function deviceParts(device: Device): string[] {
  const used = Math.max(device.own_bytes, device.used_bytes);
  const parts = [`${device.device} (${device.name})`, `${bytes(used)} of ${bytes(device.memory_bytes)}`];
  if (device.busy >= 0) parts.push(`${figure(100 * device.busy, 2)} % busy`);
  if (device.watts >= 0) parts.push(`${figure(device.watts, 3)} W`);
  if (device.celsius >= 0) parts.push(`${figure(device.celsius, 3)} °C`);
  return parts;
}

interface Place {
  x: number;
  y: number;
}

function bar(link: Link, x: number, y: number, width: number): SVGElement {
  const full = link.credits > 0 ? Math.min(1, link.in_use / link.credits) : 0;
  return draw("g", { class: full > 0.95 ? "bar full" : "bar" },
    draw("rect", { class: "room", x: x - width / 2, y: y - 3, width, height: 6 }),
    draw("rect", { class: "used", x: x - width / 2, y: y - 3, width: width * full, height: 6 }));
}

function actorBox(name: string, state: string, at: Place, width: number): SVGElement {
  return draw("g", { class: `actor ${state}` },
    draw("rect", { x: at.x, y: at.y, width, height: BOX, rx: 2 }),
    draw("text", { x: at.x + width / 2, y: at.y + BOX / 2 + 4, "text-anchor": "middle" }, name),
    draw("title", {}, `${name}: ${state}`));
}

// Contributions go right above the line; reduced steps come back below it.
function edges(node: RunNode, places: Map<string, Place>, box: number, gap: number): SVGElement[] {
  const result: SVGElement[] = [];
  for (const link of node.links) {
    const [a, b] = [places.get(link.from), places.get(link.to)];
    if (!a || !b || link.credits === 0 || a === b) continue;
    const back = b.x < a.x;
    const off = back ? 5 : -5;
    const [x1, x2] = back ? [a.x, b.x + box] : [a.x + box, b.x];
    const [y1, y2] = [a.y + BOX / 2 + off, b.y + BOX / 2 + off];
    const middle = (x1 + x2) / 2;
    // The bar stands by the replica, where links of several are apart.
    const spread = a.y === b.y ? (y1 + y2) / 2 : columnOf(link.from) === 1 ? y1 : y2;
    result.push(draw("path", { class: "link", d: `M${x1} ${y1}L${middle} ${y1}L${middle} ${y2}L${x2} ${y2}` }),
      draw("g", {}, bar(link, middle, spread, gap - 12),
        draw("title", {}, `${link.from} to ${link.to}: ${link.in_use} of ${link.credits} credits out` +
          `, ${link.queued} queued`)));
  }
  return result;
}

export function drawPipeline(node: RunNode, width: number): SVGSVGElement {
  const columns: string[][] = [[], [], []];
  const others: string[] = [];
  for (const actor of node.actors) {
    const column = columnOf(actor.name);
    if (column >= 0) columns[column]!.push(actor.name);
    else others.push(actor.name);
  }
  const used = columns.filter((column) => column.length > 0);
  const gap = Math.max(26, Math.min(56, width * 0.11));
  const box = used.length > 0 ? Math.min(120, (width - gap * (used.length - 1)) / used.length) : 0;
  const rows = Math.max(0, ...used.map((column) => column.length));
  const perRow = Math.max(1, Math.floor((width + 6) / 96));
  const wide = (width - 6 * (perRow - 1)) / perRow;
  const below = rows * ROW;
  const height = below + Math.ceil(others.length / perRow) * (BOX + 6);
  // A pixel around it for the boxes' borders.
  const svg = draw("svg", { width: width + 2, height: height + 2, viewBox: `-1 -1 ${width + 2} ${height + 2}`,
    "aria-hidden": "true" });
  const places = new Map<string, Place>();
  used.forEach((column, c) => column.forEach((name, r) => places.set(name, {
    x: c * (box + gap), y: ((r + 0.5) * rows * ROW) / column.length - BOX / 2,
  })));
  svg.append(...edges(node, places, box, gap));
  const states = new Map(node.actors.map((actor) => [actor.name, actor.state]));
  for (const [name, at] of places) svg.append(actorBox(name, states.get(name)!, at, box));
  others.forEach((name, i) => svg.append(actorBox(name, states.get(name)!, {
    x: (i % perRow) * (wide + 6), y: below + 2 + Math.floor(i / perRow) * (BOX + 6),
  }, wide)));
  return svg;
}

// A node with its words and figures around the drawing.
export class NodeCard {
  readonly element: HTMLElement;
  private name = make("h4", {});
  private shape = draw("svg", { width: 14, height: 14, viewBox: "0 0 14 14", "aria-hidden": "true" });
  private state = make("span", { class: "state" });
  private figures = make("p", { class: "figures" });
  private drawing = make("div", {});
  private cause = make("p", { class: "cause" });

  constructor() {
    this.element = make("li", { class: "node" },
      make("div", { class: "head" }, this.shape, this.name, this.state), this.cause, this.figures,
      this.drawing);
  }

  show(node: RunNode, name: string, width: number): void {
    setText(this.name, name);
    setText(this.state, node.state);
    this.element.dataset["state"] = node.state;
    this.shape.replaceChildren(nodeShape(node.state, 7, 7, 5));
    setText(this.cause, node.cause);
    this.cause.hidden = !node.cause;
    const gone = node.state === "dead" || node.state === "ended";
    const parts = [node.host, `${figure(node.cores, 2)} cores`, bytes(node.resident_bytes),
      `${bytes(node.sent_per_second)}/s out`, `${bytes(node.received_per_second)}/s in`];
    for (const device of node.devices) parts.push(...deviceParts(device));
    if (node.clock_error > 0) parts.push(`clock ± ${duration(node.clock_error)}`);
    setText(this.figures, gone ? node.host : parts.filter(Boolean).map((part) => part.replaceAll(" ", "\u00a0")).join(" · "));
    this.drawing.hidden = gone;
    if (gone) this.drawing.replaceChildren();
    else this.drawing.replaceChildren(drawPipeline(node, Math.max(180, width - 30)));
  }
}
