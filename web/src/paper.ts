// Knows whether the page is being printed: then everything is drawn, seen or not, and always in
// light colours.

const media = window.matchMedia("print");
const listeners = new Set<() => void>();
let printing = false;

export function isPrinted(): boolean {
  return printing || media.matches;
}

// Called before a print and after it.
export function onPaper(listener: () => void): void {
  listeners.add(listener);
}

function tell(now: boolean): void {
  printing = now;
  for (const listener of listeners) listener();
}

window.addEventListener("beforeprint", () => tell(true));
window.addEventListener("afterprint", () => tell(false));
media.addEventListener("change", () => tell(media.matches));
