// Changes how many nodes the pools of a run shall have, for those who know the token for it.

import { answerOf } from "./answer.ts";
import { make, setAttribute, setText } from "./elements.ts";
import type { ShownRun } from "./panel.ts";
import type { PoolChoice } from "./protocol.ts";

const KEY = "troupe.control";

// The token is kept while this tab is open. Where the browser keeps nothing, it stands in its field.
function storedToken(): string {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

function storeToken(token: string): void {
  try {
    sessionStorage.setItem(KEY, token);
  } catch {
    // It holds for this page.
  }
}

// Nothing is shown of a run that cannot be changed.
export class PoolControl {
  private run = 0;
  private asking = false;
  private forms: PoolForm[] = [];
  private formBox = make("div", {});
  private token = make("input", { type: "password", autocomplete: "off",
    oninput: () => storeToken(this.token.value) });
  private answer = make("p", { class: "note", role: "status" });
  readonly element = make("div", { class: "pool-control", role: "group", "aria-label": "Nodes of pools",
    hidden: true }, this.formBox,
    make("form", { onsubmit: (event: Event) => event.preventDefault() },
      make("label", { class: "choice" }, make("span", {}, "Token for changes"), this.token)), this.answer);

  constructor() {
    this.token.value = storedToken();
  }

  show({ listed, state }: ShownRun): void {
    const pools = state.finished ? [] : listed.pools ?? [];
    this.run = listed.id;
    this.element.hidden = pools.length === 0;
    while (this.forms.length > pools.length) this.forms.pop()!.element.remove();
    pools.forEach((pool, i) => {
      let form = this.forms[i];
      if (!form) {
        this.forms.push((form = new PoolForm((name, nodes) => void this.change(name, nodes))));
        this.formBox.append(form.element);
      }
      form.show(pool, state.bill?.pools.find((one) => one.name === pool.name)?.wanted);
    });
  }

  private async change(pool: string, nodes: string): Promise<void> {
    if (this.asking) return;
    const token = this.token.value.trim();
    if (!/^[\x20-\x7e]*$/.test(token)) {
      setText(this.answer, "a token has only characters of ASCII");
      return;
    }
    this.ask(true);
    setText(this.answer, "asking");
    try {
      setText(this.answer, await answerOf(`/api/runs/${this.run}/burst`, { method: "POST",
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
        body: JSON.stringify({ pool, nodes }) }));
    } catch (error) {
      setText(this.answer, error instanceof Error ? error.message : "no answer");
    }
    this.ask(false);
  }

  private ask(asking: boolean): void {
    this.asking = asking;
    for (const form of this.forms) form.enable(!asking);
  }
}

// One pool: how many nodes are wanted, until somebody writes another number.
class PoolForm {
  private pool = "";
  private touched = false;
  private name = make("span", {});
  private nodes = make("input", { type: "number", min: 0, step: 1, required: true,
    oninput: () => (this.touched = true) });
  private button = make("button", { type: "submit" });
  readonly element: HTMLFormElement;

  constructor(change: (pool: string, nodes: string) => void) {
    this.element = make("form", { onsubmit: (event: Event) => {
      event.preventDefault();
      change(this.pool, this.nodes.value);
    } }, make("label", { class: "choice" }, this.name, this.nodes), this.button);
  }

  enable(enabled: boolean): void {
    this.button.disabled = !enabled;
  }

  show(pool: PoolChoice, wanted: number | undefined): void {
    this.pool = pool.name;
    setText(this.name, `Nodes of ${pool.name}`);
    setText(this.button, `Change ${pool.name}`);
    setAttribute(this.nodes, "max", String(pool.most));
    if (String(wanted) === this.nodes.value) this.touched = false;
    if (!this.touched && wanted !== undefined) this.nodes.value = String(wanted);
  }
}
