// Marks of a run across its curves: members that come and go as lines with a label, checkpoints
// and validations, of which there are many, as small shapes above.

import type uPlot from "uplot";

import type { PlacedMark } from "./curve.ts";
import { canvasFont, colour } from "./palette.ts";

const LABEL = 26;
const ROWS = 3;
const shapes = ["checkpoint", "validation"];

export function isLine(mark: PlacedMark): boolean {
  return !shapes.includes(mark.kind) && mark.text !== "";
}

function short(text: string): string {
  const first = text.split(/[:;(]/)[0]!.trim();
  return first.length > LABEL ? `${first.slice(0, LABEL - 1)}…` : first;
}

function drawShape(ctx: CanvasRenderingContext2D, kind: string, x: number, y: number, r: number):
    void {
  ctx.beginPath();
  if (kind === "checkpoint") {
    ctx.rect(x - r * 0.8, y - r * 0.8, r * 1.6, r * 1.6);
  } else {
    ctx.moveTo(x, y - r * 1.1);
    ctx.lineTo(x + r, y);
    ctx.lineTo(x, y + r * 1.1);
    ctx.lineTo(x - r, y);
    ctx.closePath();
  }
  if (kind === "checkpoint") ctx.stroke();
  else ctx.fill();
}

export function marksPlugin(marks: () => readonly PlacedMark[]): uPlot.Plugin {
  return {
    hooks: {
      draw: (u) => {
        const ctx = u.ctx;
        const ratio = devicePixelRatio;
        const { left, top, width, height } = u.bbox;
        const ends: number[] = Array.from({ length: ROWS }, () => -Infinity);
        const lastShape = new Map<string, number>();
        ctx.save();
        ctx.font = canvasFont(ratio);
        ctx.lineWidth = ratio;
        ctx.textBaseline = "top";
        ctx.textAlign = "left";
        // What has no label first, so that it hides nothing.
        const order = [...marks()].sort((a, b) => Number(isLine(a)) - Number(isLine(b)));
        for (const mark of order) {
          const x = Math.round(u.valToPos(mark.x, "x", true)) + 0.5;
          if (!(x >= left - 1 && x <= left + width + 1)) continue;
          ctx.strokeStyle = ctx.fillStyle = colour("muted");
          ctx.setLineDash([]);
          if (shapes.includes(mark.kind)) {
            // Of many that would smear some are left out; the list beside has them all.
            if (x - (lastShape.get(mark.kind) ?? -Infinity) < 9 * ratio) continue;
            lastShape.set(mark.kind, x);
            const y = top - (mark.kind === "checkpoint" ? 13 : 5) * ratio;
            drawShape(ctx, mark.kind, x, y, 3 * ratio);
            continue;
          }
          ctx.setLineDash([ratio, 3 * ratio]);
          ctx.strokeStyle = colour(isLine(mark) ? "ink" : "rule");
          ctx.beginPath();
          ctx.moveTo(x, top);
          ctx.lineTo(x, top + height);
          ctx.stroke();
          if (!isLine(mark)) continue;
          const text = short(mark.text);
          const wide = ctx.measureText(text).width;
          const begin = x + 4 * ratio + wide > left + width ? x - 4 * ratio - wide : x + 4 * ratio;
          const row = ends.findIndex((end) => begin > end);
          if (row < 0) continue;
          ends[row] = begin + wide + 6 * ratio;
          const y = top + (3 + row * 15) * ratio;
          ctx.fillStyle = colour("surface");
          ctx.globalAlpha = 0.85;
          ctx.fillRect(begin - 2 * ratio, y - ratio, wide + 4 * ratio, 14 * ratio);
          ctx.globalAlpha = 1;
          ctx.fillStyle = colour("ink");
          ctx.fillText(text, begin, y);
        }
        ctx.restore();
      },
    },
  };
}
