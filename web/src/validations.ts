// The results of validations on the generated showers.

import type { Comparison, Validation, ValidationRow } from "./protocol.ts";

export const ERRORS: [keyof Omit<Comparison, "merit" | "unlike">, string][] = [
  ["sampling_fraction_error", "response"], ["longitudinal_error", "longitudinal"],
  ["transverse_error", "transverse"], ["hits_error", "hits"],
  ["sampling_fraction_width_error", "width of the response"],
];

// Figures of the generator at that time, against the data.
export function comparisonOf(one: Validation | undefined): Comparison | undefined {
  const rows: readonly ValidationRow[] = one?.rows ?? [];
  return (rows.find((row) => row.name === "generated") ?? rows[rows.length - 1])?.comparison ?? undefined;
}

export function meritOf(one: Validation | undefined): number | undefined {
  return comparisonOf(one)?.merit?.total ?? undefined;
}

// The ways in which the sample is nothing like the data. Its merit means nothing then: the merit
// alone does not tell noise from showers.
export function unlikeOf(one: Validation | undefined): readonly string[] {
  return comparisonOf(one)?.unlike ?? [];
}

// The least figure of merit so far that means something; undefined: there is none.
export function bestMerit(all: readonly Validation[]): number | undefined {
  const known = all.filter((one) => unlikeOf(one).length === 0).map(meritOf)
    .filter((merit) => merit !== undefined);
  return known.length > 0 ? Math.min(...known) : undefined;
}
