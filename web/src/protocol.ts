// The messages of the server, as docs/watching.md has them.

// A pool whose nodes may be more or fewer, and how many it has at most.
export interface PoolChoice {
  name: string;
  most: number;
}

export interface ListedRun {
  id: number;
  name: string;
  folder: string;
  live: boolean;
  // Absent: nobody may change it.
  pools?: PoolChoice[];
}

export interface RunList {
  version: string;
  runs: ListedRun[];
}

export interface RunFacts {
  name: string;
  model: string;
  version: string;
  schedule: string[];
  losses: [string, number][];
  iterations: number;
  iterations_per_epoch: number;
  micro_batches: number;
  micro_batch: number;
  price_per_node_hour: number;
}

export interface Progress {
  state: string;
  error: string;
  steps: number;
  iterations: number;
  epochs: number;
  // The one that is being trained, or was last, from 1, of all there are; 0: not known.
  epoch: number;
  all_epochs: number;
  events: number;
  events_per_second: number;
  seconds_left: number | null;
  dropped: number;
  began: number;
  newest: number;
  node_hours: number;
  core_hours: number;
  cost: number;
}

// What a run has got from one of its pools.
export interface PoolBill {
  name: string;
  wanted: number;
  running: number;
  node_hours: number;
  cost: number;
  iterations: number;
}

export interface Bill {
  pools: PoolBill[];
  cost: number;
  cost_per_epoch: number | null;
  cost_at_end: number | null;
  first_cost: number | null;
}

// Point `from` and those behind it are replaced; another `width` comes with all points.
export interface SeriesPatch {
  width: number;
  from: number;
  x: number[];
  mean: number[];
  low: number[];
  high: number[];
}

export interface Mark {
  kind: string;
  step: number;
  time: number;
  text: string;
}

export interface Actor {
  name: string;
  state: string;
  handled: number;
}

export interface Link {
  from: string;
  to: string;
  port: string;
  sent: number;
  in_use: number;
  credits: number;
  queued: number;
  dropped: number;
}

// Negative: nothing says it.
export interface Device {
  device: string;
  name: string;
  own_bytes: number;
  used_bytes: number;
  memory_bytes: number;
  busy: number;
  watts: number;
  celsius: number;
}

export interface RunNode {
  name: string;
  host: string;
  role: string;
  pid: number;
  state: string;
  cause: string;
  since: number;
  cores: number;
  resident_bytes: number;
  sent_per_second: number;
  received_per_second: number;
  clock_error: number;
  actors: Actor[];
  links: Link[];
  devices: Device[];
}

export interface Spread {
  mean: number | null;
  deviation: number | null;
}

export interface Comparison {
  merit: { total: number | null } | null;
  sampling_fraction_error: number | null;
  sampling_fraction_width_error?: number | null;
  hits_error: number | null;
  longitudinal_error: number | null;
  transverse_error: number | null;
  layer_correlation_difference?: number | null;
  // The ways in which the sample is nothing like the data.
  unlike?: string[];
}

export interface ChosenFigure {
  figure: string;
  title: string;
  unit: string;
  value: number | null;
  // From its ideal, which is mostly what equal samples have; less is better.
  distance: number | null;
}

export interface ValidationRow {
  name: string;
  events: number;
  empty_events?: number;
  invalid_events?: number;
  sampling_fraction?: Spread;
  hits?: Spread;
  comparison?: Comparison | null;
  // Errors that two samples drawn from the data have; the row of the data has them.
  floor?: Comparison | null;
  // The figure of the generator by which the run chooses its best state.
  chosen?: ChosenFigure | null;
}

export interface Validation {
  step: number;
  time: number;
  rows: ValidationRow[];
}

export interface LogLine {
  time: number;
  level: string;
  text: string;
}

export interface Update {
  version: number;
  whole: boolean;
  now: number;
  run?: RunFacts;
  progress?: Progress;
  series?: Record<string, SeriesPatch>;
  marks?: Mark[];
  nodes?: RunNode[];
  validations?: Validation[];
  showers?: number[];
  bill?: Bill;
  log?: LogLine[];
}

export interface Pair {
  data?: number[];
  generated?: number[];
}

export interface Histogram {
  name: string;
  low: number;
  high: number;
  data: number[];
  generated: number[];
}

export interface Shower {
  total: number;
  cells: number[];
  gev: number[];
}

export interface ShowerEvent {
  energy: number;
  angle: number | null;
  data: Shower;
  generated: Shower;
}

export interface Showers {
  step: number;
  space: [number, number, number];
  profiles: { x?: Pair; y?: Pair; z?: Pair };
  histograms: Histogram[];
  events: ShowerEvent[];
}
