// Numbers, durations and times as people read them.

const MINUS = "\u2212";
const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function count(value: number): string {
  return grouped.format(value).replaceAll(",", "\u202f");
}

// Three or so significant digits; large and small ones with a power of ten.
export function figure(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  let text: string;
  if (size >= 1e5 || size < 1e-3) text = value.toExponential(digits - 1).replace("e+", "e");
  else if (size >= Math.pow(10, digits - 1)) text = value.toFixed(0);
  else text = value.toPrecision(digits);
  return text.replaceAll("-", MINUS);
}

// Neighbours at an axis: with the digits that tell them apart, and no others.
export function tickTexts(values: readonly number[]): string[] {
  const gaps = values.slice(1).map((v, i) => Math.abs(v - values[i]!)).filter((gap) => gap > 0);
  return values.map((value) => {
    const size = Math.abs(value);
    if (size === 0 || !Number.isFinite(size)) return String(value);
    const apart = gaps.length > 0 ? Math.log10(size / Math.min(...gaps)) : 0;
    const digits = Math.min(15, Math.max(4, Math.ceil(apart) + 2));
    const text = size >= 1e5 || size < 1e-3
      ? value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e")
      : String(Number(value.toPrecision(digits)));
    return text.replaceAll("-", MINUS);
  });
}

export function percent(fraction: number | null | undefined): string {
  return fraction === null || fraction === undefined || !Number.isFinite(fraction)
    ? "–" : `${figure(100 * fraction)} %`;
}

export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    ++unit;
  }
  return `${unit === 0 ? value.toFixed(0) : value < 10 ? value.toFixed(1) : value.toFixed(0)} ${units[unit]}`;
}

export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds > 0 && seconds < 0.000995) return `${figure(seconds * 1e6)} µs`;
  if (seconds < 0.0995) return `${figure(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const [days, hours] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24];
  const [minutes, rest] = [Math.floor(whole / 60) % 60, whole % 60];
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${String(minutes).padStart(2, "0")} min`;
  if (minutes > 0) return `${minutes} min ${String(rest).padStart(2, "0")} s`;
  return `${rest} s`;
}

const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const dayAndClock = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

export function timeOfDay(seconds: number): string {
  return clock.format(seconds * 1000);
}

export function dateAndTime(seconds: number): string {
  return dayAndClock.format(seconds * 1000);
}
