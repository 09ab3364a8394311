// Operations of device/layers.cpp, as the reference has them (reference/phases.cpp, group_norm.cpp,
// grouped_convolution.cpp, attention.cpp, resample.cpp).

// Of an image of phases: the first channel of a phase's cell.
FUNCTION long place_of_phase(const PhaseSizes s, long n, int cell, int phase) {
  const int cells = s.cells[0] * s.cells[1] * s.cells[2],
            phases = s.stride[0] * s.stride[1] * s.stride[2];
  const int inside = s.apart ? phase * cells + cell : cell * phases + phase;
  return (n * cells * phases + inside) * s.channels;
}

KERNEL void split_phases(OPERAND(const float, x), OPERAND(float, y), const PhaseSizes s) {
  const int i = item(0), group = item(1);
  const int cells = s.cells[0] * s.cells[1] * s.cells[2],
            phases = s.stride[0] * s.stride[1] * s.stride[2];
  if (i >= (long)s.batch * cells * phases * s.channels) return;
  const int channel = i % s.channels, inside = i / s.channels % (cells * phases);
  const long n = i / s.channels / (cells * phases);
  const int cell = s.apart ? inside % cells : inside / phases,
            phase = s.apart ? inside / cells : inside % phases;
  const int from_x = s.stride[0] * (cell / (s.cells[1] * s.cells[2])) +
                     phase / (s.stride[1] * s.stride[2]) - s.offset[0];
  const int from_y = s.stride[1] * (cell / s.cells[2] % s.cells[1]) +
                     phase / s.stride[2] % s.stride[1] - s.offset[1];
  const int from_z = s.stride[2] * (cell % s.cells[2]) + phase % s.stride[2] - s.offset[2];
  const int in_image = from_x >= 0 && from_x < s.space[0] && from_y >= 0 && from_y < s.space[1] &&
                       from_z >= 0 && from_z < s.space[2];
  const long from =
      (((n * s.space[0] + from_x) * s.space[1] + from_y) * s.space[2] + from_z) * s.channels;
  AT(y, group)[i] = in_image ? AT(x, group)[from + channel] : 0.0f;
}

KERNEL void join_phases(OPERAND(const float, y), OPERAND(float, x), const PhaseSizes s) {
  const int i = item(0), group = item(1);
  if (i >= (long)s.batch * s.space[0] * s.space[1] * s.space[2] * s.channels) return;
  const Cell to = cell_at(i, s.space[0], s.space[1], s.space[2], s.channels);
  const int x_at = to.x + s.offset[0], y_at = to.y + s.offset[1], z_at = to.z + s.offset[2];
  const int cell_x = x_at / s.stride[0], cell_y = y_at / s.stride[1], cell_z = z_at / s.stride[2];
  const int inside = cell_x < s.cells[0] && cell_y < s.cells[1] && cell_z < s.cells[2];
  const int cell = (cell_x * s.cells[1] + cell_y) * s.cells[2] + cell_z;
  const int phase = (x_at % s.stride[0] * s.stride[1] + y_at % s.stride[1]) * s.stride[2] +
                    z_at % s.stride[2];
  const long from = place_of_phase(s, to.sample, cell, phase) + to.channel;
  AT(x, group)[i] = inside ? AT(y, group)[from] : 0.0f;
}

// The cell of the input that a tap of the window of an output cell touches; -1: none.
FUNCTION int grouped_input_cell(const GroupedSizes s, int out, int tap) {
  const int x = out / (s.out[1] * s.out[2]) * s.stride[0] +
                tap / (s.taps[1] * s.taps[2]) * s.dilation[0] - s.before[0];
  const int y = out / s.out[2] % s.out[1] * s.stride[1] +
                tap / s.taps[2] % s.taps[1] * s.dilation[1] - s.before[1];
  const int z = out % s.out[2] * s.stride[2] + tap % s.taps[2] * s.dilation[2] - s.before[2];
  const int inside = x >= 0 && x < s.in[0] && y >= 0 && y < s.in[1] && z >= 0 && z < s.in[2];
  return inside ? (x * s.in[1] + y) * s.in[2] + z : -1;
}
// The cell of the output whose window touches the input cell with this tap; -1: none.
FUNCTION int grouped_output_cell(const GroupedSizes s, int in, int tap) {
  const int x = in / (s.in[1] * s.in[2]) + s.before[0] -
                tap / (s.taps[1] * s.taps[2]) * s.dilation[0];
  const int y =
      in / s.in[2] % s.in[1] + s.before[1] - tap / s.taps[2] % s.taps[1] * s.dilation[1];
  const int z = in % s.in[2] + s.before[2] - tap % s.taps[2] * s.dilation[2];
  const int inside = x >= 0 && y >= 0 && z >= 0 && x % s.stride[0] == 0 && y % s.stride[1] == 0 &&
                     z % s.stride[2] == 0 && x / s.stride[0] < s.out[0] &&
                     y / s.stride[1] < s.out[1] && z / s.stride[2] < s.out[2];
  return inside ? (x / s.stride[0] * s.out[1] + y / s.stride[1]) * s.out[2] + z / s.stride[2] : -1;
}

KERNEL void grouped_forward(OPERAND(const float, x), OPERAND(const float, weights),
                            OPERAND(const float, bias), OPERAND(float, y), const GroupedSizes s) {
  const int i = item(0), group = item(1);
  const int cells = s.out[0] * s.out[1] * s.out[2], in_cells = s.in[0] * s.in[1] * s.in[2];
  if (i >= (long)s.batch * cells * s.out_channels) return;
  const int filter = i % s.out_channels, cell = i / s.out_channels % cells;
  const int seen = s.in_channels / s.groups;
  GLOBAL const float *image = AT(x, group) +
                              (long)(i / s.out_channels / cells) * in_cells * s.in_channels +
                              filter / (s.out_channels / s.groups) * seen;
  float sum = 0.0f;
  for (int tap = 0; tap < s.taps[0] * s.taps[1] * s.taps[2]; ++tap) {
    const int in = grouped_input_cell(s, cell, tap);
    if (in < 0) continue;
    GLOBAL const float *row = AT(weights, group) + (long)tap * seen * s.out_channels + filter;
    for (int channel = 0; channel < seen; ++channel) {
      sum += image[(long)in * s.in_channels + channel] * row[channel * s.out_channels];
    }
  }
  if (s.bias) sum += AT(bias, group)[filter];
  AT(y, group)[i] = sum;
}

KERNEL void grouped_backward_input(OPERAND(const float, dy), OPERAND(const float, weights),
                                   OPERAND(float, dx), const GroupedSizes s) {
  const int i = item(0), group = item(1);
  const int cells = s.in[0] * s.in[1] * s.in[2], out_cells = s.out[0] * s.out[1] * s.out[2];
  if (i >= (long)s.batch * cells * s.in_channels) return;
  const int channel = i % s.in_channels, cell = i / s.in_channels % cells;
  const int seen = s.in_channels / s.groups, filters = s.out_channels / s.groups;
  const int first = channel / seen * filters;
  GLOBAL const float *derivatives =
      AT(dy, group) + (long)(i / s.in_channels / cells) * out_cells * s.out_channels;
  float sum = 0.0f;
  for (int tap = 0; tap < s.taps[0] * s.taps[1] * s.taps[2]; ++tap) {
    const int out = grouped_output_cell(s, cell, tap);
    if (out < 0) continue;
    GLOBAL const float *row =
        AT(weights, group) + ((long)tap * seen + channel % seen) * s.out_channels;
    for (int filter = first; filter < first + filters; ++filter) {
      sum += derivatives[(long)out * s.out_channels + filter] * row[filter];
    }
  }
  AT(dx, group)[i] = sum;
}

KERNEL void grouped_backward_kernel(OPERAND(const float, x), OPERAND(const float, dy),
                                    OPERAND(float, dkernel), const GroupedSizes s) {
  const int i = item(0), group = item(1);
  const int seen = s.in_channels / s.groups, taps = s.taps[0] * s.taps[1] * s.taps[2];
  if (i >= taps * seen * s.out_channels) return;
  const int filter = i % s.out_channels, tap = i / s.out_channels / seen;
  const int channel =
      filter / (s.out_channels / s.groups) * seen + i / s.out_channels % seen;
  const int cells = s.out[0] * s.out[1] * s.out[2], in_cells = s.in[0] * s.in[1] * s.in[2];
  double sum = 0.0;
  for (int n = 0; n < s.batch; ++n) {
    for (int cell = 0; cell < cells; ++cell) {
      const int in = grouped_input_cell(s, cell, tap);
      if (in < 0) continue;
      const float value = AT(x, group)[((long)n * in_cells + in) * s.in_channels + channel];
      sum += (double)value *
             (double)AT(dy, group)[((long)n * cells + cell) * s.out_channels + filter];
    }
  }
  AT(dkernel, group)[i] = (float)sum;
}

KERNEL void grouped_backward_bias(OPERAND(const float, dy), OPERAND(float, dbias),
                                  const GroupedSizes s) {
  const int i = item(0), group = item(1);
  if (i >= s.out_channels) return;
  const int rows = s.batch * s.out[0] * s.out[1] * s.out[2];
  double sum = 0.0;
  for (int r = 0; r < rows; ++r) sum += (double)AT(dy, group)[(long)r * s.out_channels + i];
  AT(dbias, group)[i] = (float)sum;
}

KERNEL void add_bias(OPERAND(const float, bias), OPERAND(float, y), const int rows,
                     const int channels) {
  const int i = item(0), group = item(1);
  if (i >= rows * channels) return;
  AT(y, group)[i] += AT(bias, group)[i % channels];
}

KERNEL void repeat_rows(OPERAND(const float, x), OPERAND(float, y), const int batch, const int rows,
                        const int channels) {
  const int i = item(0), group = item(1);
  if (i >= (long)batch * rows * channels) return;
  AT(y, group)[i] = AT(x, group)[i / channels / rows * channels + i % channels];
}

KERNEL void product(OPERAND(const float, a), OPERAND(const float, b), OPERAND(float, y),
                    const int elements) {
  const int i = item(0), group = item(1);
  if (i >= elements) return;
  AT(y, group)[i] = AT(a, group)[i] * AT(b, group)[i];
}

KERNEL void permute_axes(OPERAND(const float, x), OPERAND(float, y), const int batch,
                         const AxisSizes s) {
  const int i = item(0), group = item(1);
  const int elements = s.in[0] * s.in[1] * s.in[2] * s.in[3];
  if (i >= (long)batch * elements) return;
  int rest = i % elements, at[4];
  for (int axis = 3; axis >= 0; --axis) {
    const int from = s.order[axis];
    at[from] = rest % s.in[from];
    rest /= s.in[from];
  }
  const int from = ((at[0] * s.in[1] + at[1]) * s.in[2] + at[2]) * s.in[3] + at[3];
  AT(y, group)[i] = AT(x, group)[i / elements * elements + from];
}

KERNEL void copy_parts(OPERAND(const float, from), OPERAND(float, to), const int times,
                       const PartSizes s) {
  const int i = item(0), group = item(1);
  if (i >= (long)times * s.count) return;
  const int part = i / s.count, element = i % s.count;
  AT(to, group)[s.to_offset + part * s.to_step + element] =
      AT(from, group)[s.from_offset + part * s.from_step + element];
}

// Norms of single samples. An item has a channel of a sample, or a group of its channels, or an
// element.
FUNCTION double sum_of_group(GLOBAL const double *of_channels, const GroupNormSizes s, int i) {
  const int of_group = s.channels / s.groups;
  GLOBAL const double *from =
      of_channels + (long)(i / s.groups) * s.channels + i % s.groups * of_group;
  double total = 0.0;
  for (int c = 0; c < of_group; ++c) total += from[c];
  return total;
}
FUNCTION double values_of_group(const GroupNormSizes s) {
  return (double)((long)s.rows * (s.channels / s.groups));
}
// The group of a channel of a sample.
FUNCTION int group_of(const GroupNormSizes s, int sample, int channel) {
  return sample * s.groups + channel / (s.channels / s.groups);
}

KERNEL void group_norm_sums(OPERAND(const float, x), OPERAND(double, sums),
                            const GroupNormSizes s) {
  const int i = item(0), group = item(1);
  if (i >= s.samples * s.channels) return;
  GLOBAL const float *values =
      AT(x, group) + (long)(i / s.channels) * s.rows * s.channels + i % s.channels;
  double sum = 0.0;
  for (int r = 0; r < s.rows; ++r) sum += (double)values[(long)r * s.channels];
  AT(sums, group)[i] = sum;
}
KERNEL void group_norm_means(OPERAND(const double, sums), OPERAND(double, means),
                             OPERAND(float, mean), const GroupNormSizes s) {
  const int i = item(0), group = item(1);
  if (i >= s.samples * s.groups) return;
  const double own = sum_of_group(AT(sums, group), s, i) / values_of_group(s);
  AT(means, group)[i] = own;
  AT(mean, group)[i] = (float)own;
}
KERNEL void group_norm_squares(OPERAND(const float, x), OPERAND(double, sums),
                               OPERAND(const double, means), const GroupNormSizes s) {
  const int i = item(0), group = item(1);
  if (i >= s.samples * s.channels) return;
  const int sample = i / s.channels, channel = i % s.channels;
  const double mean = AT(means, group)[group_of(s, sample, channel)];
  GLOBAL const float *values = AT(x, group) + (long)sample * s.rows * s.channels + channel;
  double squares = 0.0;
  for (int r = 0; r < s.rows; ++r) {
    const double deviation = (double)values[(long)r * s.channels] - mean;
    squares += deviation * deviation;
  }
  AT(sums, group)[i] = squares;
}
KERNEL void group_norm_deviations(OPERAND(const double, sums), OPERAND(float, inverse_deviation),
                                  const GroupNormSizes s, const double epsilon) {
  const int i = item(0), group = item(1);
  if (i >= s.samples * s.groups) return;
  const double variance = sum_of_group(AT(sums, group), s, i) / values_of_group(s);
  AT(inverse_deviation, group)[i] = (float)(1.0 / sqrt(variance + epsilon));
}
KERNEL void group_norm_normalise(OPERAND(const float, x), OPERAND(const float, gamma),
                                 OPERAND(const float, beta), OPERAND(const float, mean),
                                 OPERAND(const float, inverse_deviation), OPERAND(float, y),
                                 const GroupNormSizes s) {
  const int i = item(0), group = item(1);
  if (i >= (long)s.samples * s.rows * s.channels) return;
  const int channel = i % s.channels;
  const int own = group_of(s, i / s.channels / s.rows, channel);
  AT(y, group)[i] = (AT(x, group)[i] - AT(mean, group)[own]) *
                        (AT(inverse_deviation, group)[own] * AT(gamma, group)[channel]) +
                    AT(beta, group)[channel];
}

// [sample][channel]: sums of dy, then of dy x^.
KERNEL void group_norm_products(OPERAND(const float, x), OPERAND(const float, dy),
                                OPERAND(const float, mean),
                                OPERAND(const float, inverse_deviation), OPERAND(double, sums),
                                const GroupNormSizes s) {
  const int i = item(0), group = item(1);
  if (i >= s.samples * s.channels) return;
  const int sample = i / s.channels, channel = i % s.channels;
  const int own = group_of(s, sample, channel);
  const float shift = AT(mean, group)[own], scale = AT(inverse_deviation, group)[own];
  const long first = (long)sample * s.rows * s.channels + channel;
  double sum = 0.0, products = 0.0;
  for (int r = 0; r < s.rows; ++r) {
    const long at = first + (long)r * s.channels;
    const double derivative = (double)AT(dy, group)[at];
    const float normalised = (AT(x, group)[at] - shift) * scale;
    sum += derivative;
    products += derivative * (double)normalised;
  }
  AT(sums, group)[i] = sum;
  AT(sums, group)[s.samples * s.channels + i] = products;
}
KERNEL void group_norm_totals(OPERAND(const double, sums), OPERAND(float, dgamma),
                              OPERAND(float, dbeta), const GroupNormSizes s) {
  const int i = item(0), group = item(1);
  if (i >= s.channels) return;
  double sum = 0.0, products = 0.0;
  for (int sample = 0; sample < s.samples; ++sample) {
    sum += AT(sums, group)[sample * s.channels + i];
    products += AT(sums, group)[(s.samples + sample) * s.channels + i];
  }
  AT(dgamma, group)[i] = (float)products;
  AT(dbeta, group)[i] = (float)sum;
}
KERNEL void group_norm_mean_products(OPERAND(const float, gamma), OPERAND(const double, sums),
                                     OPERAND(float, means), const GroupNormSizes s) {
  const int i = item(0), group = item(1);
  if (i >= s.samples * s.groups) return;
  const int of_group = s.channels / s.groups, first = i % s.groups * of_group;
  const int sample = i / s.groups;
  double sum = 0.0, products = 0.0;
  for (int c = first; c < first + of_group; ++c) {
    const double factor = (double)AT(gamma, group)[c];
    sum += factor * AT(sums, group)[sample * s.channels + c];
    products += factor * AT(sums, group)[(s.samples + sample) * s.channels + c];
  }
  AT(means, group)[i] = (float)(sum / values_of_group(s));
  AT(means, group)[s.samples * s.groups + i] = (float)(products / values_of_group(s));
}
KERNEL void group_norm_backward(OPERAND(const float, x), OPERAND(const float, dy),
                                OPERAND(const float, gamma), OPERAND(const float, mean),
                                OPERAND(const float, inverse_deviation),
                                OPERAND(const float, means), OPERAND(float, dx),
                                const GroupNormSizes s) {
  const int i = item(0), group = item(1);
  if (i >= (long)s.samples * s.rows * s.channels) return;
  const int channel = i % s.channels;
  const int own = group_of(s, i / s.channels / s.rows, channel);
  const float scale = AT(inverse_deviation, group)[own];
  const float normalised = (AT(x, group)[i] - AT(mean, group)[own]) * scale;
  const float centred = AT(gamma, group)[channel] * AT(dy, group)[i] - AT(means, group)[own] -
                        normalised * AT(means, group)[s.samples * s.groups + own];
  AT(dx, group)[i] = scale * centred;
}

// An item is a row.
KERNEL void softmax_forward(OPERAND(const float, x), OPERAND(float, y), const int rows,
                            const int channels) {
  const int i = item(0), group = item(1);
  if (i >= rows) return;
  GLOBAL const float *from = AT(x, group) + (long)i * channels;
  float largest = from[0];
  for (int c = 1; c < channels; ++c) {
    if (largest == largest && !(from[c] <= largest)) largest = from[c];
  }
  double sum = 0.0;
  for (int c = 0; c < channels; ++c) sum += exp_exactly((double)from[c] - (double)largest);
  for (int c = 0; c < channels; ++c) {
    AT(y, group)[(long)i * channels + c] =
        (float)(exp_exactly((double)from[c] - (double)largest) / sum);
  }
}
KERNEL void softmax_backward(OPERAND(const float, y), OPERAND(const float, dy), OPERAND(float, dx),
                             const int rows, const int channels) {
  const int i = item(0), group = item(1);
  if (i >= rows) return;
  GLOBAL const float *result = AT(y, group) + (long)i * channels;
  GLOBAL const float *derivative = AT(dy, group) + (long)i * channels;
  double sum = 0.0;
  for (int c = 0; c < channels; ++c) sum += (double)result[c] * (double)derivative[c];
  for (int c = 0; c < channels; ++c) {
    AT(dx, group)[(long)i * channels + c] =
        (float)((double)result[c] * ((double)derivative[c] - sum));
  }
}

// One head of a sample: its first query; keys and values follow it.
FUNCTION GLOBAL const float *head_of(GLOBAL const float *x, const AttentionSizes s, int head) {
  return x + (long)(head / s.heads) * s.cells * 3 * s.heads * s.width + head % s.heads * s.width;
}
// The derivatives of one head's results.
FUNCTION GLOBAL const float *results_of(GLOBAL const float *dy, const AttentionSizes s, int head) {
  return dy + (long)(head / s.heads) * s.cells * s.heads * s.width + head % s.heads * s.width;
}
FUNCTION double dot_of(GLOBAL const float *a, GLOBAL const float *b, int width) {
  double sum = 0.0;
  for (int d = 0; d < width; ++d) sum += (double)a[d] * (double)b[d];
  return sum;
}

// An item is a query of a head.
KERNEL void attention_weights(OPERAND(const float, x), OPERAND(double, weights),
                              const AttentionSizes s, const double scale) {
  const int i = item(0), group = item(1);
  if (i >= s.batch * s.heads * s.cells) return;
  const int part = s.heads * s.width;
  GLOBAL const float *head = head_of(AT(x, group), s, i / s.cells);
  GLOBAL const float *query = head + (long)(i % s.cells) * 3 * part;
  GLOBAL double *own = AT(weights, group) + (long)i * s.cells;
  double largest = 0.0, sum = 0.0;
  for (int j = 0; j < s.cells; ++j) {
    own[j] = scale * dot_of(query, head + (long)j * 3 * part + part, s.width);
    if (j == 0 || (largest == largest && !(own[j] <= largest))) largest = own[j];
  }
  for (int j = 0; j < s.cells; ++j) {
    own[j] = exp_exactly(own[j] - largest);
    sum += own[j];
  }
  for (int j = 0; j < s.cells; ++j) own[j] /= sum;
}

// An item is a number of a query's result.
KERNEL void attention_values(OPERAND(const float, x), OPERAND(const double, weights),
                             OPERAND(float, y), const AttentionSizes s) {
  const int i = item(0), group = item(1);
  if (i >= s.batch * s.heads * s.cells * s.width) return;
  const int query = i / s.width, head = query / s.cells, part = s.heads * s.width;
  GLOBAL const float *values = head_of(AT(x, group), s, head) + 2 * part + i % s.width;
  GLOBAL const double *own = AT(weights, group) + (long)query * s.cells;
  double sum = 0.0;
  for (int j = 0; j < s.cells; ++j) sum += own[j] * (double)values[(long)j * 3 * part];
  const long cell = (long)(head / s.heads) * s.cells + query % s.cells;
  AT(y, group)[cell * part + head % s.heads * s.width + i % s.width] = (float)sum;
}

KERNEL void attention_slopes(OPERAND(const float, x), OPERAND(const float, dy),
                             OPERAND(const double, weights), OPERAND(double, slopes),
                             const AttentionSizes s) {
  const int i = item(0), group = item(1);
  if (i >= s.batch * s.heads * s.cells) return;
  const int part = s.heads * s.width, head = i / s.cells;
  GLOBAL const float *values = head_of(AT(x, group), s, head) + 2 * part;
  GLOBAL const float *derivative = results_of(AT(dy, group), s, head) + (long)(i % s.cells) * part;
  GLOBAL const double *own = AT(weights, group) + (long)i * s.cells;
  GLOBAL double *slope = AT(slopes, group) + (long)i * s.cells;
  double mean = 0.0;
  for (int j = 0; j < s.cells; ++j) {
    slope[j] = dot_of(derivative, values + (long)j * 3 * part, s.width);
    mean += own[j] * slope[j];
  }
  for (int j = 0; j < s.cells; ++j) slope[j] = own[j] * (slope[j] - mean);
}

// An item is a number of a cell's query, key and value.
KERNEL void attention_backward(OPERAND(const float, x), OPERAND(const float, dy),
                               OPERAND(const double, weights), OPERAND(const double, slopes),
                               OPERAND(float, dx), const AttentionSizes s, const double scale) {
  const int i = item(0), group = item(1);
  if (i >= s.batch * s.heads * s.cells * s.width) return;
  const int d = i % s.width, cell = i / s.width % s.cells, head = i / s.width / s.cells;
  const int part = s.heads * s.width;
  GLOBAL const float *from = head_of(AT(x, group), s, head) + d;
  GLOBAL const float *derivative = results_of(AT(dy, group), s, head) + d;
  GLOBAL const double *w = AT(weights, group) + (long)head * s.cells * s.cells;
  GLOBAL const double *slope = AT(slopes, group) + (long)head * s.cells * s.cells;
  double query = 0.0, key = 0.0, value = 0.0;
  for (int j = 0; j < s.cells; ++j) {
    const long row = (long)j * 3 * part;
    query += slope[(long)cell * s.cells + j] * (double)from[row + part];
    key += slope[(long)j * s.cells + cell] * (double)from[row];
    value += w[(long)j * s.cells + cell] * (double)derivative[(long)j * part];
  }
  GLOBAL float *to = AT(dx, group) +
                     ((long)(head / s.heads) * s.cells + cell) * 3 * part +
                     head % s.heads * s.width + d;
  to[0] = (float)(query * scale);
  to[part] = (float)(key * scale);
  to[2 * part] = (float)value;
}

// The row of a class; -1 when the number is that of none.
FUNCTION int row_of_class(float number, int classes) {
  if (!(number >= 0.0f && number < (float)classes)) return -1;
  return (float)(int)number == number ? (int)number : -1;
}
KERNEL void embedding_forward(OPERAND(const float, x), OPERAND(const float, rows), OPERAND(float, y),
                              const int batch, const int classes, const int units) {
  const int i = item(0), group = item(1);
  if (i >= batch * units) return;
  const int row = row_of_class(AT(x, group)[i / units], classes);
  AT(y, group)[i] =
      row < 0 ? float_of_bits(0x7fc00000u) : AT(rows, group)[(long)row * units + i % units];
}
KERNEL void embedding_backward(OPERAND(const float, x), OPERAND(const float, dy),
                               OPERAND(float, dkernel), const int batch, const int classes,
                               const int units) {
  const int i = item(0), group = item(1);
  if (i >= (long)classes * units) return;
  double sum = 0.0;
  for (int n = 0; n < batch; ++n) {
    if (row_of_class(AT(x, group)[n], classes) == i / units) {
      sum += (double)AT(dy, group)[(long)n * units + i % units];
    }
  }
  AT(dkernel, group)[i] = (float)sum;
}

// The place of a window's first largest cell.
FUNCTION long largest_of_window(GLOBAL const float *x, const WindowSizes s, const Cell window) {
  long largest = -1;
  for (int kx = 0; kx < s.window[0]; ++kx) {
    for (int ky = 0; ky < s.window[1]; ++ky) {
      for (int kz = 0; kz < s.window[2]; ++kz) {
        const int fx = window.x * s.window[0] + kx, fy = window.y * s.window[1] + ky,
                  fz = window.z * s.window[2] + kz;
        const long from =
            (((window.sample * s.fine[0] + fx) * s.fine[1] + fy) * s.fine[2] + fz) * s.channels +
            window.channel;
        if (largest < 0 || (x[largest] == x[largest] && !(x[from] <= x[largest]))) largest = from;
      }
    }
  }
  return largest;
}
KERNEL void max_pool_forward(OPERAND(const float, x), OPERAND(float, y), const WindowSizes s,
                             const int batch) {
  const int i = item(0), group = item(1);
  if (i >= (long)batch * s.coarse[0] * s.coarse[1] * s.coarse[2] * s.channels) return;
  const Cell window = cell_at(i, s.coarse[0], s.coarse[1], s.coarse[2], s.channels);
  AT(y, group)[i] = AT(x, group)[largest_of_window(AT(x, group), s, window)];
}
// An item is a cell of the fine image.
KERNEL void max_pool_backward(OPERAND(const float, x), OPERAND(const float, dy), OPERAND(float, dx),
                              const WindowSizes s, const int batch) {
  const int i = item(0), group = item(1);
  if (i >= (long)batch * s.fine[0] * s.fine[1] * s.fine[2] * s.channels) return;
  Cell window = cell_at(i, s.fine[0], s.fine[1], s.fine[2], s.channels);
  window.x /= s.window[0];
  window.y /= s.window[1];
  window.z /= s.window[2];
  float result = 0.0f;
  if (window.x < s.coarse[0] && window.y < s.coarse[1] && window.z < s.coarse[2] &&
      largest_of_window(AT(x, group), s, window) == i) {
    result = AT(dy, group)[(((window.sample * s.coarse[0] + window.x) * s.coarse[1] + window.y) *
                                s.coarse[2] +
                            window.z) *
                               s.channels +
                           window.channel];
  }
  AT(dx, group)[i] = result;
}
