// Making elements of the page without a framework.

type Child = Node | string | undefined | false;
type Attributes = Record<string, unknown>;

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on") && typeof value === "function") {
      element.addEventListener(name.slice(2), value as EventListener);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  for (const child of children) if (child) element.append(child);
}

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

export function draw<K extends keyof SVGElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, attributes, children);
  return element;
}

// Sets the text only if it differs, so that neither layout nor a screen reader is disturbed.
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

let ids = 0;
export function uniqueId(stem: string): string {
  return `${stem}-${++ids}`;
}

// A labelled choice. `options`: value and text.
export function choice(
  label: string, options: [string, string][], value: string, changed: (value: string) => void,
): { element: HTMLElement; select: HTMLSelectElement } {
  const select = make("select", {
    onchange: () => changed(select.value),
  });
  setOptions(select, options, value);
  return { element: make("label", { class: "choice" }, make("span", {}, label), select), select };
}

export function setOptions(
  select: HTMLSelectElement, options: [string, string][], value: string,
): void {
  const key = JSON.stringify(options);
  if (select.dataset["options"] !== key) {
    select.dataset["options"] = key;
    select.replaceChildren(...options.map(([v, text]) => make("option", { value: v }, text)));
  }
  if (select.value !== value) select.value = value;
}

export function toggle(
  label: string, on: boolean, changed: (on: boolean) => void,
): { element: HTMLElement; input: HTMLInputElement } {
  const input = make("input", { type: "checkbox", onchange: () => changed(input.checked) });
  input.checked = on;
  return { element: make("label", { class: "toggle" }, input, make("span", {}, label)), input };
}

export function button(text: string, pressed: () => void, attributes: Attributes = {}):
    HTMLButtonElement {
  return make("button", { type: "button", onclick: pressed, ...attributes }, text);
}
