// The results of validations on the generated showers.

import type { ChosenFigure, Comparison, Validation, ValidationRow } from "./protocol.ts";

export const ERRORS: [keyof Omit<Comparison, "merit" | "unlike">, string][] = [
  ["sampling_fraction_error", "response"], ["longitudinal_error", "longitudinal"],
  ["transverse_error", "transverse"], ["hits_error", "hits"],
  ["sampling_fraction_width_error", "width of the response"],
];

function generatedOf(one: Validation | undefined): ValidationRow | undefined {
  const rows: readonly ValidationRow[] = one?.rows ?? [];
  return rows.find((row) => row.name === "generated") ?? rows[rows.length - 1];
}

// Figures of the generator at that time, against the data.
export function comparisonOf(one: Validation | undefined): Comparison | undefined {
  return generatedOf(one)?.comparison ?? undefined;
}

// The figure by which the run chooses its best state; runs of before say nothing, and chose by the
// figure of merit.
export function chosenOf(one: Validation | undefined): ChosenFigure {
  const merit = meritOf(one) ?? null;
  return generatedOf(one)?.chosen ??
    { figure: "merit", title: "figure of merit", unit: "", value: merit, distance: merit };
}

export function meritOf(one: Validation | undefined): number | undefined {
  return comparisonOf(one)?.merit?.total ?? undefined;
}

// The ways in which the sample is nothing like the data. Its merit means nothing then: the merit
// alone does not tell noise from showers.
export function unlikeOf(one: Validation | undefined): readonly string[] {
  return comparisonOf(one)?.unlike ?? [];
}

// The chosen figure that was nearest to its ideal so far, as best.json has it;
// undefined: there is none.
export function bestChosen(all: readonly Validation[]): ChosenFigure | undefined {
  const figure = chosenOf(all[all.length - 1]).figure;
  const known = all.map(chosenOf)
    .filter((chosen) => chosen.figure === figure && typeof chosen.distance === "number");
  return known.reduce<ChosenFigure | undefined>((best, chosen) =>
    best === undefined || chosen.distance! < best.distance! ? chosen : best, undefined);
}
