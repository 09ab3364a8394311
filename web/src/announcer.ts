// Tells screen readers of changes, politely: states, connections, members; never single steps.

import { make } from "./elements.ts";
import type { ShownRun } from "./panel.ts";
import { linkText } from "./run_header.ts";

interface Known {
  state: string;
  link: string;
  nodes: Map<string, string>;
}

export class Announcer {
  readonly element = make("div", { class: "for-readers", role: "status", "aria-live": "polite" });
  private known = new Map<number, Known>();

  look(runs: readonly ShownRun[]): void {
    const news: string[] = [];
    for (const run of runs) {
      const now: Known = {
        state: run.state.progress?.state ?? "",
        link: run.connection.link.kind,
        nodes: new Map(run.state.nodes.map((node) => [node.name, node.state])),
      };
      const before = this.known.get(run.listed.id);
      this.known.set(run.listed.id, now);
      if (!before || before.state === "") continue;
      if (before.state !== now.state) news.push(`${run.label} is ${now.state}`);
      if (before.link !== now.link) news.push(`${run.label}: ${linkText(run.connection.link, run)}`);
      for (const [name, state] of now.nodes) {
        const was = before.nodes.get(name);
        if (was !== state) news.push(was ? `${name} is ${state}` : `${name} has joined`);
      }
    }
    if (news.length > 0) this.element.textContent = news.slice(0, 5).join(". ");
  }
}
