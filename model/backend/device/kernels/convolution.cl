// Convolutions over planes (cpu/plane_convolution.h): images become planes of positions, with tiles
// one for each of Winograd's points and each channel, of values at the points; sums over taps and
// channels stand in planes of the same kind and become cells again. All planes of a micro-batch are
// made at once.

#define POINTS 8
// Loops over an item's values have constant bounds, so that the values stay in registers. An item
// keeps so many sums that it computes more than it reads.

// Sums of one point: (kx, ky, part, channel).
FUNCTION long rows_of_point(const ConvolutionSizes s) {
  return (long)s.taps[0] * s.taps[1] * s.taps_in_z * s.parts * s.in_channels;
}

// The mirrored kernel with its channels swapped: the geometry is that of the convolution that maps
// dy to dx.
KERNEL void convolution_mirror(OPERAND(const float, kernel_), OPERAND(float, mirrored),
                               const ConvolutionSizes s) {
  const int i = item(0);
  const int taps = s.taps[0] * s.taps[1] * s.taps[2];
  if (i >= taps * s.in_channels * s.out_channels) return;
  const int out = i % s.out_channels;
  const int in = i / s.out_channels % s.in_channels;
  const int tap = i / s.out_channels / s.in_channels;
  AT(mirrored, 0)
  [i] = AT(kernel_, 0)[((long)(taps - 1 - tap) * s.out_channels + out) * s.in_channels + in];
}

// Values of the taps along z at the points: [point][kx, ky, part][channel][weight row]. `transform`
// is [tap][point]. Without tiles the taps as they are.
KERNEL void convolution_tap_values(OPERAND(const float, kernel_), OPERAND(const double, transform),
                                   OPERAND(float, weights), const ConvolutionSizes s) {
  const int i = item(0), size = rows_of_point(s) * s.weight_row;
  if (i >= s.points * size) return;
  const int out = i % s.weight_row, in = i / s.weight_row % s.in_channels;
  const long column = i % size / s.weight_row / s.in_channels;
  const int point = i / size;
  double weight = 0.0;
  if (out < s.out_channels) {
    GLOBAL const float *taps =
        AT(kernel_, 0) +
        (column * s.taps_of_part * s.in_channels + in) * s.out_channels + out;
    const long stride = (long)s.in_channels * s.out_channels;
    if (s.points == 1) {
      weight = (double)taps[0];
    } else {
      for (int tap = 0; tap < s.taps_of_part; ++tap) {
        weight += AT(transform, 0)[tap * POINTS + point] * (double)taps[tap * stride];
      }
    }
  }
  AT(weights, 0)[i] = s.pairs ? bfloat16_of((float)weight) : (float)weight;
}

// B^T (cpu/winograd.h).
FUNCTION void transform_inputs(float *v) {
  const float d0 = v[0], d1 = v[1], d2 = v[2], d3 = v[3], d4 = v[4], d5 = v[5], d6 = v[6],
              d7 = v[7];
  v[0] = fma(5.25f, d4 - d2, d0 - d6);
  const float even1 = fma(-4.25f, d4, d2 + d6), odd1 = fma(-4.25f, d3, d1 + d5);
  v[1] = even1 + odd1;
  v[2] = even1 - odd1;
  const float even2 = fma(0.25f, d2, fma(-1.25f, d4, d6));
  const float odd2 = fma(2.0f, d5, fma(-2.5f, d3, 0.5f * d1));
  v[3] = even2 + odd2;
  v[4] = even2 - odd2;
  const float even3 = fma(4.0f, d2, fma(-5.0f, d4, d6));
  const float odd3 = fma(2.0f, d1, fma(-2.5f, d3, 0.5f * d5));
  v[5] = even3 + odd3;
  v[6] = even3 - odd3;
  v[7] = fma(5.25f, d3 - d5, d7 - d1);
}

// A.
FUNCTION void transform_derivatives(float *v, int outputs) {
  float dy[POINTS], last = 0.0f;
  for (int j = 0; j < POINTS; ++j) {
    dy[j] = v[j];
    if (j == outputs - 1) last = v[j];
  }
  const float places[3] = {1.0f, 2.0f, 0.5f};
  for (int k = 0; k < 3; ++k) {
    const float square = places[k] * places[k];
    float even = 0.0f, odd = 0.0f;
    for (int j = 6; j >= 0; j -= 2) {
      if (j < outputs) even = fma(even, square, dy[j]);
    }
    for (int j = 7; j >= 1; j -= 2) {
      if (j < outputs) odd = fma(odd, square, dy[j]);
    }
    odd = odd * places[k];
    v[2 * k + 1] = even + odd;
    v[2 * k + 2] = even - odd;
  }
  v[0] = dy[0];
  v[7] = last;
}

// A^T; sums that are rounding become zero.
FUNCTION void restore_outputs(float *v, int outputs) {
  float even[3], odd[3], sizes[3], restored[POINTS];
  for (int k = 0; k < 3; ++k) {
    const float plus = v[2 * k + 1], minus = v[2 * k + 2];
    even[k] = plus + minus;
    odd[k] = plus - minus;
    sizes[k] = fabs(plus) + fabs(minus);
  }
  float twos = 1.0f, halves = 1.0f;
  for (int j = 0; j < POINTS; ++j) {
    if (j >= outputs) continue;
    const float first = j % 2 == 0 ? even[0] : odd[0], second = j % 2 == 0 ? even[1] : odd[1],
                third = j % 2 == 0 ? even[2] : odd[2];
    float sum = fma(twos, second, fma(halves, third, first));
    float size = fma(twos, sizes[1], fma(halves, sizes[2], sizes[0]));
    if (j == 0) {
      sum = sum + v[0];
      size = size + fabs(v[0]);
    }
    if (j == outputs - 1) {
      sum = sum + v[7];
      size = size + fabs(v[7]);
    }
    restored[j] = fabs(sum) < size * 0x1p-20f ? 0.0f : sum;
    twos = twos * 2.0f;
    halves = halves * 0.5f;
  }
  for (int j = 0; j < POINTS; ++j) {
    if (j < outputs) v[j] = restored[j];
  }
}

// [sample][x plane][point][part, channel][position]. One item makes the points of a position.
KERNEL void convolution_inputs(OPERAND(const float, x), OPERAND(float, planes),
                               const ConvolutionSizes s) {
  const int group = item(1);
  const int channels = s.parts * s.in_channels;
  if (item(0) >= s.batch * s.in[0] * channels * s.plane) return;
  const int position = item(0) % s.plane;
  const int channel = item(0) / s.plane % channels;
  const long plane = item(0) / s.plane / channels;  // of all samples
  const int part = channel / s.in_channels;
  const int y = position / s.row - s.before[1], t = position % s.row;
  GLOBAL const float *row =
      AT(x, group) + (plane * s.in[1] + y) * s.in[2] * s.in_channels + channel % s.in_channels;
  const int inside = y >= 0 && y < s.in[1] && position / s.row < s.out[1] + s.taps[1] - 1;
  float values[POINTS];
  for (int d = 0; d < POINTS; ++d) {
    const int z = t * s.outputs + d - (s.before[2] - part * s.taps_of_part);
    const int is_cell = d < s.points && inside && z >= 0 && z < s.in[2];
    values[d] = is_cell ? row[(long)z * s.in_channels] : 0.0f;
  }
  if (s.points > 1) transform_inputs(values);
  GLOBAL float *to = AT(planes, group) + (plane * s.points * channels + channel) * s.plane;
  for (int d = 0; d < POINTS; ++d) {
    if (d >= s.points) continue;
    to[(long)d * channels * s.plane + position] = s.pairs ? bfloat16_of(values[d]) : values[d];
  }
}

FUNCTION void add_products(float *sums, float value, float4 a, float4 b) {
  sums[0] = fma(value, a.x, sums[0]);
  sums[1] = fma(value, a.y, sums[1]);
  sums[2] = fma(value, a.z, sums[2]);
  sums[3] = fma(value, a.w, sums[3]);
  sums[4] = fma(value, b.x, sums[4]);
  sums[5] = fma(value, b.y, sums[5]);
  sums[6] = fma(value, b.z, sums[6]);
  sums[7] = fma(value, b.w, sums[7]);
}

FUNCTION void add_pairs(float *sums, float v0, float v1, float4 w0, float4 w1) {
  sums[0] = add_pair(v0, w0.x, v1, w1.x, sums[0]);
  sums[1] = add_pair(v0, w0.y, v1, w1.y, sums[1]);
  sums[2] = add_pair(v0, w0.z, v1, w1.z, sums[2]);
  sums[3] = add_pair(v0, w0.w, v1, w1.w, sums[3]);
}

// [sample][x plane][point][output][position] of the output. An item's positions are `apart`
// from each other.
FUNCTION void convolution_multiply_of(GLOBAL const float *planes, GLOBAL const float *weights,
                                      GLOBAL float *sums, const ConvolutionSizes s,
                                      const int pairs) {
  const int blocks = s.weight_row / ITEM_OUTPUTS, apart = s.positions / MULTIPLY_POSITIONS;
  if (item(0) >= s.batch * s.out[0] * s.points * blocks * apart) return;
  const int position = item(0) % apart;
  int rest = item(0) / apart;
  const int output = (rest % blocks) * ITEM_OUTPUTS;
  rest /= blocks;
  const int point = rest % s.points;
  rest /= s.points;
  const int ox = rest % s.out[0];
  const long n = rest / s.out[0];
  const int channels = s.parts * s.in_channels;
  float sum[MULTIPLY_POSITIONS][ITEM_OUTPUTS];
  UNROLLED for (int k = 0; k < MULTIPLY_POSITIONS; ++k) {
    for (int o = 0; o < ITEM_OUTPUTS; ++o) sum[k][o] = 0.0f;
  }
  GLOBAL const float *weight =
      weights + point * rows_of_point(s) * s.weight_row + output;
  for (int kx = 0; kx < s.taps[0]; ++kx) {
    const int ix = ox + kx - s.before[0];
    // Taps outside the image in x are left out, and their weights with them.
    if (ix < 0 || ix >= s.in[0]) {
      weight += (long)s.taps[1] * s.taps_in_z * channels * s.weight_row;
      continue;
    }
    GLOBAL const float *plane =
        planes + ((n * s.in[0] + ix) * s.points + point) * channels * s.plane + position;
    for (int ky = 0; ky < s.taps[1]; ++ky) {
      for (int kz = 0; kz < s.taps_in_z; ++kz) {
        GLOBAL const float *value = plane + ky * s.row + kz;
        if (pairs) {
          for (int c = 0; c < channels; c += 2, value += 2 * (long)s.plane) {
            const int two = c + 1 < channels;
            const float4 none = FOUR(0.0f, 0.0f, 0.0f, 0.0f);
            const float4 a0 = LOAD_FOUR(weight), b0 = LOAD_FOUR(weight + 4);
            weight += s.weight_row;
            const float4 a1 = two ? LOAD_FOUR(weight) : none;
            const float4 b1 = two ? LOAD_FOUR(weight + 4) : none;
            if (two) weight += s.weight_row;
            UNROLLED for (int k = 0; k < MULTIPLY_POSITIONS; ++k) {
              const float v0 = value[k * apart];
              const float v1 = two ? value[s.plane + k * apart] : 0.0f;
              add_pairs(sum[k], v0, v1, a0, a1);
              add_pairs(sum[k] + 4, v0, v1, b0, b1);
            }
          }
          continue;
        }
        UNROLLED_BY(2) for (int c = 0; c < channels; ++c) {
          const float4 a = LOAD_FOUR(weight), b = LOAD_FOUR(weight + 4);
          UNROLLED for (int k = 0; k < MULTIPLY_POSITIONS; ++k) {
            add_products(sum[k], value[k * apart], a, b);
          }
          value += s.plane;
          weight += s.weight_row;
        }
      }
    }
  }
  GLOBAL float *to =
      sums +
      ((((n * s.out[0] + ox) * s.points + point) * s.out_channels) + output) * s.positions +
      position;
  for (int o = 0; o < ITEM_OUTPUTS; ++o) {
    if (output + o >= s.out_channels) break;
    UNROLLED for (int k = 0; k < MULTIPLY_POSITIONS; ++k) {
      to[(long)o * s.positions + k * apart] = sum[k][o];
    }
  }
}
KERNEL void convolution_multiply(OPERAND(const float, planes), OPERAND(const float, weights),
                                 OPERAND(float, sums), const ConvolutionSizes s) {
  convolution_multiply_of(AT(planes, item(1)), AT(weights, 0), AT(sums, item(1)), s, 0);
}
KERNEL void convolution_multiply_pairs(OPERAND(const float, planes), OPERAND(const float, weights),
                                       OPERAND(float, sums), const ConvolutionSizes s) {
  convolution_multiply_of(AT(planes, item(1)), AT(weights, 0), AT(sums, item(1)), s, 1);
}

// The same for one output: over channels for each tap, and then over taps.
KERNEL void convolution_multiply_single(OPERAND(const float, planes),
                                        OPERAND(const float, weights), OPERAND(float, sums),
                                        const ConvolutionSizes s) {
  const int group = item(1);
  if (item(0) >= s.batch * s.out[0] * s.points * s.positions) return;
  const int position = item(0) % s.positions;
  const int point = item(0) / s.positions % s.points;
  const int ox = item(0) / s.positions / s.points % s.out[0];
  const long n = item(0) / s.positions / s.points / s.out[0];
  const int channels = s.parts * s.in_channels;
  float total = 0.0f;
  for (int kx = 0; kx < s.taps[0]; ++kx) {
    const int ix = ox + kx - s.before[0];
    if (ix < 0 || ix >= s.in[0]) continue;
    GLOBAL const float *plane =
        AT(planes, group) + ((n * s.in[0] + ix) * s.points + point) * channels * s.plane + position;
    for (int ky = 0; ky < s.taps[1]; ++ky) {
      for (int kz = 0; kz < s.taps_in_z; ++kz) {
        GLOBAL const float *value = plane + ky * s.row + kz;
        GLOBAL const float *weight =
            AT(weights, 0) + point * rows_of_point(s) +
            (long)((kx * s.taps[1] + ky) * s.taps_in_z + kz) * channels;
        float sum = 0.0f;
        if (s.pairs) {
          for (int c = 0; c < channels; c += 2, value += 2 * (long)s.plane) {
            const int two = c + 1 < channels;
            sum = add_pair(value[0], weight[c], two ? value[s.plane] : 0.0f,
                           two ? weight[c + 1] : 0.0f, sum);
          }
        } else {
          for (int c = 0; c < channels; ++c, value += s.plane) sum = fma(*value, weight[c], sum);
        }
        total = total + sum;
      }
    }
  }
  AT(sums, group)[item(0)] = total;
}

// Cells from sums: one item makes the outputs of a position.
KERNEL void convolution_outputs(OPERAND(const float, sums), OPERAND(const float, bias),
                                OPERAND(float, y), const ConvolutionSizes s) {
  const int group = item(1);
  const int tiles = s.row - s.taps_in_z + 1;  // that hold outputs
  if (item(0) >= s.batch * s.out[0] * s.out[1] * tiles * s.out_channels) return;
  const int o = item(0) % s.out_channels;
  const int t = item(0) / s.out_channels % tiles;
  const int oy = item(0) / s.out_channels / tiles % s.out[1];
  const long plane = item(0) / s.out_channels / tiles / s.out[1];  // of all samples
  GLOBAL const float *from =
      AT(sums, group) + (plane * s.points * s.out_channels + o) * s.positions + oy * s.row + t;
  float values[POINTS];
  for (int k = 0; k < POINTS; ++k) {
    values[k] = k < s.points ? from[(long)k * s.out_channels * s.positions] : 0.0f;
  }
  if (s.points > 1) restore_outputs(values, s.outputs);
  const float shift = s.bias ? AT(bias, 0)[o] : 0.0f;
  for (int j = 0; j < POINTS; ++j) {
    const int oz = t * s.outputs + j;
    if (j >= s.outputs || oz >= s.out[2]) continue;
    AT(y, group)
    [((plane * s.out[1] + oy) * s.out[2] + oz) * s.out_channels + o] =
        finished(s.activation, values[j], shift);
  }
}

// Planes of derivatives: [sample][x plane][point][output][position].
KERNEL void convolution_derivatives(OPERAND(const float, dy), OPERAND(float, planes),
                                    const ConvolutionSizes s) {
  const int group = item(1);
  if (item(0) >= s.batch * s.out[0] * s.out_channels * s.positions) return;
  const int position = item(0) % s.positions;
  const int o = item(0) / s.positions % s.out_channels;
  const long plane = item(0) / s.positions / s.out_channels;
  const int oy = position / s.row, t = position % s.row;
  float values[POINTS];
  for (int j = 0; j < POINTS; ++j) {
    const int oz = t * s.outputs + j;
    const int inside = j < s.outputs && oy < s.out[1] && oz < s.out[2];
    const long from = ((plane * s.out[1] + oy) * s.out[2] + oz) * s.out_channels + o;
    values[j] = inside ? AT(dy, group)[from] : 0.0f;
  }
  if (s.points > 1) transform_derivatives(values, s.outputs);
  GLOBAL float *to =
      AT(planes, group) + (plane * s.points * s.out_channels + o) * s.positions + position;
  for (int k = 0; k < POINTS; ++k) {
    if (k >= s.points) continue;
    to[(long)k * s.out_channels * s.positions] = s.pairs ? bfloat16_of(values[k]) : values[k];
  }
}

FUNCTION float sum_of_lanes(IN_LOCAL const float *lanes) {
  float halves[8], quarters[4];
  for (int i = 0; i < 8; ++i) halves[i] = lanes[i] + lanes[i + 8];
  for (int i = 0; i < 4; ++i) quarters[i] = halves[i] + halves[i + 4];
  return (quarters[0] + quarters[2]) + (quarters[1] + quarters[3]);
}

// Sums over the positions of up to eight x planes, in sixteen lanes: [sample][planes at
// once][point][kx][ky, kz, part, channel][output]. Sixteen items, one for each lane, make DOT_ROWS
// neighbouring rows of DOT_OUTPUTS neighbouring sums; a block has DOT_TEAMS of sixteen.
KERNEL void convolution_dots(OPERAND(const float, inputs), OPERAND(const float, derivatives),
                             OPERAND(float, sums), const ConvolutionSizes s) {
  LOCAL float lanes[DOT_TEAMS][DOT_ROWS * DOT_OUTPUTS][LANES];
  const int group = item(1);
  const int lane = item_of_block(0) % LANES, team = item_of_block(0) / LANES;
  const int channels = s.parts * s.in_channels, outputs = s.out_channels;
  const int rows = s.taps[1] * s.taps_in_z * channels;
  const int row_blocks = (rows + DOT_ROWS - 1) / DOT_ROWS;
  const int output_blocks = (outputs + DOT_OUTPUTS - 1) / DOT_OUTPUTS;
  const int parts = (s.out[0] + PLANES_AT_ONCE - 1) / PLANES_AT_ONCE;
  int rest = block(0) * DOT_TEAMS + team;
  const int output = (rest % output_blocks) * DOT_OUTPUTS;
  rest /= output_blocks;
  const int row = (rest % row_blocks) * DOT_ROWS;
  rest /= row_blocks;
  const int kx = rest % s.taps[0];
  rest /= s.taps[0];
  const int point = rest % s.points;
  rest /= s.points;
  const int part = rest % parts;
  const long n = rest / parts;
  const int in_lane = s.pairs ? 2 : 1;  // neighbouring positions
  // Behind the last row or output the last one is computed again, and not written.
  int row_at[DOT_ROWS], output_at[DOT_OUTPUTS];
  for (int r = 0; r < DOT_ROWS; ++r) {
    const int own = row + r < rows ? row + r : rows - 1;
    const int tap = own / channels;
    row_at[r] = own % channels * s.plane + tap / s.taps_in_z * s.row + tap % s.taps_in_z;
  }
  for (int o = 0; o < DOT_OUTPUTS; ++o) {
    output_at[o] = (output + o < outputs ? output + o : outputs - 1) * s.positions;
  }
  float sum[DOT_ROWS][DOT_OUTPUTS];
  for (int r = 0; r < DOT_ROWS; ++r) {
    for (int o = 0; o < DOT_OUTPUTS; ++o) sum[r][o] = 0.0f;
  }
  for (int i = 0; i < PLANES_AT_ONCE; ++i) {
    const int ox = part * PLANES_AT_ONCE + i, ix = ox + kx - s.before[0];
    if (n >= s.batch || ox >= s.out[0] || ix < 0 || ix >= s.in[0]) continue;
    GLOBAL const float *left = AT(inputs, group) +
                               ((n * s.in[0] + ix) * s.points + point) * channels * s.plane +
                               lane * in_lane;
    GLOBAL const float *right =
        AT(derivatives, group) +
        ((n * s.out[0] + ox) * s.points + point) * outputs * s.positions + lane * in_lane;
    for (int q = 0; q < s.positions; q += LANES * in_lane) {
      float value[DOT_ROWS];
      for (int r = 0; r < DOT_ROWS; ++r) value[r] = left[row_at[r] + q];
      if (s.pairs) {
        float second[DOT_ROWS];
        for (int r = 0; r < DOT_ROWS; ++r) second[r] = left[row_at[r] + q + 1];
        for (int o = 0; o < DOT_OUTPUTS; ++o) {
          const float d0 = right[output_at[o] + q], d1 = right[output_at[o] + q + 1];
          for (int r = 0; r < DOT_ROWS; ++r) {
            sum[r][o] = add_pair(value[r], d0, second[r], d1, sum[r][o]);
          }
        }
        continue;
      }
      for (int o = 0; o < DOT_OUTPUTS; ++o) {
        const float derivative = right[output_at[o] + q];
        for (int r = 0; r < DOT_ROWS; ++r) sum[r][o] = fma(value[r], derivative, sum[r][o]);
      }
    }
  }
  for (int r = 0; r < DOT_ROWS; ++r) {
    for (int o = 0; o < DOT_OUTPUTS; ++o) lanes[team][r * DOT_OUTPUTS + o][lane] = sum[r][o];
  }
  BARRIER;
  if (n >= s.batch) return;
  GLOBAL float *to =
      AT(sums, group) +
      (((n * parts + part) * s.points + point) * s.taps[0] + kx) * (long)rows * outputs;
  for (int i = lane; i < DOT_ROWS * DOT_OUTPUTS; i += LANES) {
    const int r = row + i / DOT_OUTPUTS, o = output + i % DOT_OUTPUTS;
    if (r < rows && o < outputs) to[(long)r * outputs + o] = sum_of_lanes(lanes[team][i]);
  }
}

// totals[i] = the sums of all terms, in order: [term][i].
KERNEL void add_terms(OPERAND(const float, sums), OPERAND(float, totals), const long elements,
                      const int terms) {
  const int i = item(0), group = item(1);
  if (i >= elements) return;
  float total = 0.0f;
  for (int term = 0; term < terms; ++term) total += AT(sums, group)[term * elements + i];
  AT(totals, group)[i] = total;
}

// Gradients of the taps from those at the points, in double; without tiles as they are.
KERNEL void convolution_gradient(OPERAND(const float, gradient), OPERAND(const double, transform),
                                 OPERAND(float, dkernel), const ConvolutionSizes s) {
  const int i = item(0), group = item(1);
  const int channels = s.in_channels * s.out_channels;
  if (i >= s.taps[0] * s.taps[1] * s.taps[2] * channels) return;
  GLOBAL const float *from = AT(gradient, group);
  if (s.points == 1) {
    AT(dkernel, group)[i] = from[i];
    return;
  }
  const int number = i % channels, tap = i / channels % s.taps_of_part;
  const long column = i / channels / s.taps_of_part;
  double sum = 0.0;
  for (int point = 0; point < s.points; ++point) {
    sum += AT(transform, 0)[tap * POINTS + point] *
           (double)from[point * rows_of_point(s) * s.out_channels + column * channels + number];
  }
  AT(dkernel, group)[i] = (float)sum;
}
