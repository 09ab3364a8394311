// The viewer's choices, remembered in this browser. In private windows, which keep nothing, they
// hold for this page.

export interface Preferences {
  theme: "system" | "light" | "dark";
  logScale: boolean;
  smoothing: number;
  axis: "step" | "time";
}

const KEY = "troupe.preferences";
const preferences: Preferences = {
  theme: "system", logScale: true, smoothing: 25, axis: "step", ...stored(),
};
const listeners = new Set<() => void>();

function stored(): Partial<Preferences> {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return typeof found === "object" && found !== null ? found : {};
  } catch {
    return {};
  }
}

export function preference<K extends keyof Preferences>(name: K): Preferences[K] {
  return preferences[name];
}

export function prefer<K extends keyof Preferences>(name: K, value: Preferences[K]): void {
  preferences[name] = value;
  try {
    localStorage.setItem(KEY, JSON.stringify(preferences));
  } catch {
    // It holds for this page.
  }
  for (const listener of listeners) listener();
}

export function onPreference(listener: () => void): void {
  listeners.add(listener);
}
