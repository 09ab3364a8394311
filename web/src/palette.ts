// Colours come from the style sheet, so that light and dark stand in one place.

// A run each; style/charts.css has the same for legends.
export const DASHES: number[][] = [[], [7, 4], [2, 3], [9, 3, 2, 3], [16, 4], [9, 3, 2, 3, 2, 3]];
export const SERIES_COLOURS = 6;

export interface CurveStyle {
  colour: number;
  dash: number;
}

// The style of curve `which`, among the `each` curves that every run has in a chart. Colours go on
// from run to run, as dashes alone do not tell noisy curves apart; no two of them are the same.
export function curveStyle(run: number, which = 0, each = 1): CurveStyle {
  return { colour: (run * each + which) % SERIES_COLOURS, dash: run % DASHES.length };
}

export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// Size of text on a canvas, as large as other small text, in pixels of the page.
export function canvasTextSize(): number {
  return 0.6875 * parseFloat(getComputedStyle(document.documentElement).fontSize);
}

export function canvasFont(ratio = 1): string {
  return `${canvasTextSize() * ratio}px ${getComputedStyle(document.body).fontFamily}`;
}

export function seriesColour(index: number): string {
  return colour(`series-${index % SERIES_COLOURS}`);
}

// Blue over grey to yellow, readable for all kinds of colour vision (after cividis). From 0 to 1.
// Event displays are dark, light page or not; the darkest end would vanish there.
const STOPS = [
  [0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120],
  [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56],
] as const;

export function heat(fraction: number): [number, number, number] {
  const at = (0.2 + 0.8 * Math.min(1, Math.max(0, fraction))) * (STOPS.length - 1);
  const index = Math.min(STOPS.length - 2, Math.floor(at));
  const [low, high] = [STOPS[index]!, STOPS[index + 1]!];
  const mix = (i: 0 | 1 | 2) => (low[i] + (high[i] - low[i]) * (at - index)) / 255;
  return [mix(0), mix(1), mix(2)];
}

export function heatCss(fraction: number): string {
  return `rgb(${heat(fraction).map((v) => Math.round(255 * v)).join(" ")})`;
}
