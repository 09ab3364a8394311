// Light or dark: as the system has it, or as was chosen.

import { choice } from "./elements.ts";
import { isPrinted, onPaper } from "./paper.ts";
import { onPreference, prefer, preference, type Preferences } from "./preferences.ts";

const system = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

export function isDark(): boolean {
  if (isPrinted()) return false;
  const theme = preference("theme");
  return theme === "system" ? system.matches : theme === "dark";
}

// Called after colours have changed: canvases have to be drawn anew.
export function onTheme(listener: () => void): void {
  listeners.add(listener);
}

let shown: boolean | undefined;
function apply(): void {
  if (shown === isDark()) return;
  shown = isDark();
  document.documentElement.dataset["theme"] = shown ? "dark" : "light";
  for (const listener of listeners) listener();
}

export function startTheme(): void {
  system.addEventListener("change", apply);
  onPreference(apply);
  onPaper(apply);
  apply();
}

export function themeChoice(): HTMLElement {
  return choice("Colours", [["system", "as system"], ["light", "light"], ["dark", "dark"]],
    preference("theme"), (value) => prefer("theme", value as Preferences["theme"])).element;
}
