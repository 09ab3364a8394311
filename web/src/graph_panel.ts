// The run as a graph: the ring between members, and what stands in each.

import { make, setText } from "./elements.ts";
import { Fingerprint, type Panel, section, type ShownRun } from "./panel.ts";
import { NodeCard } from "./pipeline_drawing.ts";
import type { RunNode } from "./protocol.ts";
import { drawRing, nodeShape, ringLinks, ringOrder } from "./ring_drawing.ts";
import { draw } from "./elements.ts";

const CARDS = 24;
// Members that were lost are drawn for so long; then the lists alone tell of them.
const SHOWN_DEAD_SECONDS = 600;

export class GraphPanel implements Panel {
  readonly element: HTMLElement;
  private ring = make("div", { class: "ring-box" });
  private words = make("p", { class: "for-readers" });
  private ringBox: HTMLElement;
  private cards = make("ul", { class: "nodes" });
  private more = make("p", { class: "note" });
  private list: NodeCard[] = [];
  private seen = new Fingerprint();
  private sentBefore = new Map<string, number>();
  private sentAt = 0;
  private last: readonly ShownRun[] = [];

  constructor() {
    const legend = make("ul", { class: "shapes", "aria-label": "Shapes" },
      ...["running", "joining", "ended", "dead"].map((state) => make("li", {},
        draw("svg", { width: 14, height: 14, viewBox: "0 0 14 14", "aria-hidden": "true" },
          nodeShape(state, 7, 7, 5)), state)));
    this.ringBox = make("div", {}, make("h3", {}, "Ring of members"), this.ring, this.words);
    this.element = section("graph", "Members and links", legend,
      make("div", { class: "graph-body" }, this.ringBox,
        make("div", {}, make("h3", {}, "What stands where"), this.cards, this.more)),
      make("p", { class: "note" },
        "A bar between two actors is as full as credits of the link are out: messages under way, queued or being worked on."));
    new ResizeObserver(() => {
      this.seen.forget();
      this.show(this.last);
    }).observe(this.cards);
  }

  show(runs: readonly ShownRun[]): void {
    this.last = runs;
    if (!this.seen.changed(...runs.map((r) => `${r.listed.id}${r.label}:${r.state.changes.nodes}`))) return;
    const several = runs.length > 1;
    const nodes = runs.flatMap((run) => {
      const now = run.state.now();
      return run.state.nodes.filter((node) => run.state.finished || node.since === 0 ||
        !["dead", "ended"].includes(node.state) || now - node.since < SHOWN_DEAD_SECONDS)
        .map((node) => ({ node, name: several ? `${run.label} ${node.name}` : node.name }));
    });
    this.showRing(runs[0]?.state.nodes.filter((n) => nodes.some((s) => s.node === n)) ?? []);
    const width = this.cards.clientWidth;
    const perRow = Math.max(1, Math.floor((width + 12) / 330));
    this.cards.style.gridTemplateColumns = `repeat(${perRow}, minmax(0, 1fr))`;
    const shown = nodes.slice(0, CARDS);
    while (this.list.length > shown.length) this.list.pop()!.element.remove();
    shown.forEach(({ node, name }, i) => {
      let card = this.list[i];
      if (!card) {
        this.list.push((card = new NodeCard()));
        this.cards.append(card.element);
      }
      card.show(node, name, (width - 12 * (perRow - 1)) / perRow);
    });
    setText(this.more, nodes.length > CARDS
      ? `${nodes.length - CARDS} further nodes stand in the table of actors.` : "");
  }

  private showRing(nodes: RunNode[]): void {
    const members = nodes.filter((node) => node.actors.some((a) => a.name.startsWith("reducer"))
      || node.role === "member");
    this.ringBox.hidden = members.length < 2;
    if (members.length < 2) return;
    const links = ringLinks(members, this.sentBefore);
    if (Date.now() - this.sentAt > 10000) {
      this.sentAt = Date.now();
      this.sentBefore = new Map(members.flatMap((node) => node.links.filter((l) => l.port === "ring")
        .map((l) => [`${l.from}>${l.to}`, l.sent])));
    }
    this.ring.replaceChildren(drawRing(members, links, this.ring.clientWidth || 300));
    const order = ringOrder(members, links).filter((node) => links.some((l) => l.from === node));
    const out = members.filter((node) => !order.includes(node));
    setText(this.words, `Ring: ${order.map((node) => node.name).join(" to ")}, and back. ` +
      links.map((l) => `${l.from.name} has ${l.link.in_use} of ${l.link.credits} credits out`).join("; ") +
      `. ${out.map((node) => `${node.name} is ${node.state}`).join("; ")}`);
  }
}
