// The controls that all curves obey: axis, scale, smoothing and zoom.

import { button, choice, make, toggle } from "./elements.ts";
import { prefer, preference } from "./preferences.ts";
import type { Range, Zoom } from "./zoom.ts";

const SMOOTHING: [string, string][] = [
  ["1", "none"], ["25", "25 points"], ["100", "100 points"], ["400", "400 points"],
];

export function historyTools(zoom: Zoom, all: () => Range): HTMLElement {
  const axis = choice("Along", [["step", "steps"], ["time", "time"]], preference("axis"), (value) => {
    zoom.set(null);
    prefer("axis", value === "time" ? "time" : "step");
  });
  const smoothing = choice("Smoothing", SMOOTHING, String(preference("smoothing")), (value) =>
    prefer("smoothing", Number(value)));
  const log = toggle("Logarithmic", preference("logScale"), (on) => prefer("logScale", on));
  const reset = button("Show all", () => zoom.set(null), { disabled: true });
  zoom.onChange(() => {
    reset.disabled = zoom.range === null;
  });
  return make("div", { class: "tools", role: "group", "aria-label": "Curves" },
    axis.element, smoothing.element, log.element,
    make("span", { class: "buttons" },
      button("−", () => zoom.scale(2, all()), { "aria-label": "Zoom out" }),
      button("+", () => zoom.scale(0.5, all()), { "aria-label": "Zoom in" }),
      button("‹", () => zoom.pan(-0.25, all()), { "aria-label": "Earlier" }),
      button("›", () => zoom.pan(0.25, all()), { "aria-label": "Later" }),
      reset));
}
