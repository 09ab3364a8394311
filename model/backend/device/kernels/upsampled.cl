// Convolutions of upsampled images (cpu/upsampled_convolution.h): one small convolution of the coarse
// image for each phase, with the kernel collapsed for it. `first_taps` is where the taps of each
// phase begin.

FUNCTION int phase_taps(const ConvolutionSizes s, int axis, int phase) {
  return (phase + s.taps[axis] - 1) / s.factor[axis] + 1;
}
// The phase of output u c + phase + before, and the coarse cell c that it begins at.
FUNCTION int phase_of(const ConvolutionSizes s, int axis, int output) {
  const int from = output - s.before[axis];
  return (from % s.factor[axis] + s.factor[axis]) % s.factor[axis];
}
FUNCTION int cell_of(const ConvolutionSizes s, int axis, int output) {
  return (output - s.before[axis] - phase_of(s, axis, output)) / s.factor[axis];
}
// The output of a phase at a coarse cell; -1 where there is none.
FUNCTION int output_of(const ConvolutionSizes s, int axis, int phase, int cell) {
  const int output = s.factor[axis] * cell + phase + s.before[axis];
  return output < 0 || output >= s.out[axis] ? -1 : output;
}
FUNCTION int phase_number(const ConvolutionSizes s, int x, int y, int z) {
  return (x * s.factor[1] + y) * s.factor[2] + z;
}

typedef struct {
  int phase[3], tap[3];
} CoarseTap;

// Coarse tap number `tap` of all phases, as one of its phase.
FUNCTION CoarseTap coarse_tap(const ConvolutionSizes s, GLOBAL const int *first_taps, int tap) {
  const int phases = s.factor[0] * s.factor[1] * s.factor[2];
  int phase = 0;
  while (phase + 1 < phases && first_taps[phase + 1] <= tap) ++phase;
  CoarseTap t;
  t.phase[2] = phase % s.factor[2];
  t.phase[1] = phase / s.factor[2] % s.factor[1];
  t.phase[0] = phase / s.factor[2] / s.factor[1];
  const int own = tap - first_taps[phase];
  const int y_taps = phase_taps(s, 1, t.phase[1]), z_taps = phase_taps(s, 2, t.phase[2]);
  t.tap[2] = own % z_taps;
  t.tap[1] = own / z_taps % y_taps;
  t.tap[0] = own / z_taps / y_taps;
  return t;
}

// collapsed: [coarse tap of a phase][in][weight row], or, transposed, [coarse tap][out][weight row];
// zeros behind the last of a row. Summed in double.
KERNEL void upsampled_collapse(OPERAND(const float, kernel_), OPERAND(const int, first_taps),
                               OPERAND(float, collapsed), const ConvolutionSizes s, const int taps,
                               const int transposed) {
  const int rows = transposed ? s.out_channels : s.in_channels;
  const int columns = transposed ? s.in_channels : s.out_channels;
  if (item(0) >= taps * rows * s.weight_row) return;
  const int column = item(0) % s.weight_row;
  const int row = item(0) / s.weight_row % rows;
  const CoarseTap t = coarse_tap(s, AT(first_taps, 0), item(0) / s.weight_row / rows);
  int begin[3], end[3];
  for (int axis = 0; axis < 3; ++axis) {
    const int from = t.tap[axis] * s.factor[axis] - t.phase[axis];
    begin[axis] = from > 0 ? from : 0;
    end[axis] = from + s.factor[axis] < s.taps[axis] ? from + s.factor[axis]
                                                         : s.taps[axis];
  }
  const int number = transposed ? column * s.out_channels + row : row * s.out_channels + column;
  double sum = 0.0;
  for (int x = begin[0]; x < end[0] && column < columns; ++x) {
    for (int y = begin[1]; y < end[1]; ++y) {
      for (int z = begin[2]; z < end[2]; ++z) {
        const long tap = (x * s.taps[1] + y) * s.taps[2] + z;
        sum += (double)AT(kernel_, 0)[tap * s.in_channels * s.out_channels + number];
      }
    }
  }
  AT(collapsed, 0)[item(0)] = s.pairs ? bfloat16_of((float)sum) : (float)sum;
}

// The transposed map, for the gradient.
KERNEL void upsampled_expand(OPERAND(const float, gradient), OPERAND(const int, first_taps),
                             OPERAND(float, dkernel), const ConvolutionSizes s) {
  const int i = item(0), group = item(1);
  const int channels = s.in_channels * s.out_channels;
  if (i >= s.taps[0] * s.taps[1] * s.taps[2] * channels) return;
  const int number = i % channels, tap = i / channels;
  const int kz = tap % s.taps[2], ky = tap / s.taps[2] % s.taps[1],
            kx = tap / s.taps[2] / s.taps[1];
  double sum = 0.0;
  for (int x = 0; x < s.factor[0]; ++x) {
    for (int y = 0; y < s.factor[1]; ++y) {
      for (int z = 0; z < s.factor[2]; ++z) {
        const int own = ((x + kx) / s.factor[0] * phase_taps(s, 1, y) +
                         (y + ky) / s.factor[1]) *
                            phase_taps(s, 2, z) +
                        (z + kz) / s.factor[2];
        const long from = AT(first_taps, 0)[phase_number(s, x, y, z)] + own;
        sum += (double)AT(gradient, group)[from * channels + number];
      }
    }
  }
  AT(dkernel, group)[i] = (float)sum;
}

// Adds the products of all channels of one tap to the sums of ITEM_POSITIONS cells, `stride` cells
// apart; outside the image there are zeros.
FUNCTION void add_tap(float sum[ITEM_POSITIONS][ITEM_OUTPUTS], GLOBAL const float *first,
                      const int *inside, long stride, int channels,
                      GLOBAL const float *weight, const ConvolutionSizes s) {
  if (s.pairs) {
    for (int c = 0; c < channels; c += 2, weight += 2 * s.weight_row) {
      const int two = c + 1 < channels;
      const float4 none = FOUR(0.0f, 0.0f, 0.0f, 0.0f);
      const float4 a0 = LOAD_FOUR(weight), b0 = LOAD_FOUR(weight + 4);
      const float4 a1 = two ? LOAD_FOUR(weight + s.weight_row) : none;
      const float4 b1 = two ? LOAD_FOUR(weight + s.weight_row + 4) : none;
      for (int k = 0; k < ITEM_POSITIONS; ++k) {
        const float v0 = inside[k] ? bfloat16_of(first[k * stride + c]) : 0.0f;
        const float v1 = inside[k] && two ? bfloat16_of(first[k * stride + c + 1]) : 0.0f;
        add_pairs(sum[k], v0, v1, a0, a1);
        add_pairs(sum[k] + 4, v0, v1, b0, b1);
      }
    }
    return;
  }
  for (int c = 0; c < channels; ++c, weight += s.weight_row) {
    const float4 a = LOAD_FOUR(weight), b = LOAD_FOUR(weight + 4);
    for (int k = 0; k < ITEM_POSITIONS; ++k) {
      add_products(sum[k], inside[k] ? first[k * stride + c] : 0.0f, a, b);
    }
  }
}

// One item makes ITEM_OUTPUTS outputs of ITEM_POSITIONS cells of one phase, neighbours along z.
KERNEL void upsampled_forward(OPERAND(const float, x), OPERAND(const float, collapsed),
                              OPERAND(const int, first_taps), OPERAND(const float, bias),
                              OPERAND(float, y), const ConvolutionSizes s) {
  const int group = item(1);
  const int outputs = s.out_channels, inputs = s.in_channels, factor = s.factor[2];
  const int blocks = s.weight_row / ITEM_OUTPUTS;
  const int columns = (s.out[2] + factor * ITEM_POSITIONS - 1) / (factor * ITEM_POSITIONS);
  if (item(0) >= s.batch * s.out[0] * s.out[1] * columns * factor * blocks) return;
  const Cell to = cell_at(item(0), s.out[0], s.out[1], columns * factor, blocks);
  const int o = to.channel * ITEM_OUTPUTS;
  const int oz = to.z / factor * factor * ITEM_POSITIONS + to.z % factor;
  const int fx = phase_of(s, 0, to.x), fy = phase_of(s, 1, to.y), fz = phase_of(s, 2, oz);
  const int cx = cell_of(s, 0, to.x), cy = cell_of(s, 1, to.y), cz = cell_of(s, 2, oz);
  const int x_taps = phase_taps(s, 0, fx), y_taps = phase_taps(s, 1, fy),
            z_taps = phase_taps(s, 2, fz);
  GLOBAL const float *weights =
      AT(collapsed, 0) +
      (long)AT(first_taps, 0)[phase_number(s, fx, fy, fz)] * inputs * s.weight_row + o;
  GLOBAL const float *image = AT(x, group) + to.sample * s.in[0] * s.in[1] * s.in[2] * inputs;
  float sum[ITEM_POSITIONS][ITEM_OUTPUTS];
  for (int k = 0; k < ITEM_POSITIONS; ++k) {
    for (int i = 0; i < ITEM_OUTPUTS; ++i) sum[k][i] = 0.0f;
  }
  for (int jx = 0; jx < x_taps; ++jx) {
    const int ix = cx + jx;
    if (ix < 0 || ix >= s.in[0]) continue;  // left out; along y and z there are zeros
    for (int jy = 0; jy < y_taps; ++jy) {
      const int iy = cy + jy;
      for (int jz = 0; jz < z_taps; ++jz) {
        int inside[ITEM_POSITIONS];
        for (int k = 0; k < ITEM_POSITIONS; ++k) {
          const int iz = cz + jz + k;
          inside[k] = iy >= 0 && iy < s.in[1] && iz >= 0 && iz < s.in[2];
        }
        add_tap(sum, image + (((long)ix * s.in[1] + iy) * s.in[2] + cz + jz) * inputs, inside,
                inputs, inputs,
                weights + (long)((jx * y_taps + jy) * z_taps + jz) * inputs * s.weight_row, s);
      }
    }
  }
  UNROLLED for (int k = 0; k < ITEM_POSITIONS; ++k) {
    const int z = oz + k * factor;
    GLOBAL float *cell =
        AT(y, group) +
        (((to.sample * s.out[0] + to.x) * s.out[1] + to.y) * s.out[2] + z) * outputs + o;
    UNROLLED for (int i = 0; i < ITEM_OUTPUTS; ++i) {
      if (z >= s.out[2] || o + i >= outputs) continue;
      cell[i] = finished(s.activation, sum[k][i], s.bias ? AT(bias, 0)[o + i] : 0.0f);
    }
  }
}

// The same for ITEM_OUTPUTS channels of ITEM_POSITIONS cells of the image. `collapsed` is
// transposed.
KERNEL void upsampled_backward_input(OPERAND(const float, dy), OPERAND(const float, collapsed),
                                     OPERAND(const int, first_taps), OPERAND(float, dx),
                                     const ConvolutionSizes s) {
  const int group = item(1);
  const int outputs = s.out_channels, inputs = s.in_channels;
  const int blocks = s.weight_row / ITEM_OUTPUTS;
  const int columns = (s.in[2] + ITEM_POSITIONS - 1) / ITEM_POSITIONS;
  if (item(0) >= s.batch * s.in[0] * s.in[1] * columns * blocks) return;
  const Cell to = cell_at(item(0), s.in[0], s.in[1], columns, blocks);
  const int iz = to.z * ITEM_POSITIONS, c = to.channel * ITEM_OUTPUTS;
  GLOBAL const float *derivatives =
      AT(dy, group) + to.sample * s.out[0] * s.out[1] * s.out[2] * outputs;
  float sum[ITEM_POSITIONS][ITEM_OUTPUTS];
  for (int k = 0; k < ITEM_POSITIONS; ++k) {
    for (int i = 0; i < ITEM_OUTPUTS; ++i) sum[k][i] = 0.0f;
  }
  for (int fx = 0; fx < s.factor[0]; ++fx) {
    for (int jx = 0; jx < phase_taps(s, 0, fx); ++jx) {
      const int ox = output_of(s, 0, fx, to.x - jx);
      for (int fy = 0; fy < s.factor[1]; ++fy) {
        for (int fz = 0; fz < s.factor[2]; ++fz) {
          const int y_taps = phase_taps(s, 1, fy), z_taps = phase_taps(s, 2, fz);
          const long first = AT(first_taps, 0)[phase_number(s, fx, fy, fz)];
          for (int jy = 0; jy < y_taps; ++jy) {
            const int oy = output_of(s, 1, fy, to.y - jy);
            for (int jz = 0; jz < z_taps; ++jz) {
              int inside[ITEM_POSITIONS];
              for (int k = 0; k < ITEM_POSITIONS; ++k) {
                inside[k] = ox >= 0 && oy >= 0 && output_of(s, 2, fz, iz + k - jz) >= 0;
              }
              const int oz = s.factor[2] * (iz - jz) + fz + s.before[2];  // of the first cell
              add_tap(sum, derivatives + (((long)ox * s.out[1] + oy) * s.out[2] + oz) * outputs,
                      inside, (long)s.factor[2] * outputs, outputs,
                      AT(collapsed, 0) +
                          (first + (jx * y_taps + jy) * z_taps + jz) * outputs * s.weight_row + c,
                      s);
            }
          }
        }
      }
    }
  }
  for (int k = 0; k < ITEM_POSITIONS; ++k) {
    GLOBAL float *cell =
        AT(dx, group) +
        (((to.sample * s.in[0] + to.x) * s.in[1] + to.y) * s.in[2] + iz + k) * inputs + c;
    for (int i = 0; i < ITEM_OUTPUTS; ++i) {
      if (iz + k < s.in[2] && c + i < inputs) cell[i] = sum[k][i];
    }
  }
}

// A cell in a plane of the coarse image, zeros around it included.
typedef struct {
  int y, z;
} PlaneCell;

FUNCTION PlaneCell moved(PlaneCell from, int y, int z, int row) {
  from.y += y;
  from.z += z;
  while (from.z >= row) {
    from.z -= row;
    ++from.y;
  }
  return from;
}

// Sums over the positions of all x planes of a phase, in sixteen lanes: [sample][coarse tap][in][out].
// `lead` are the zero cells before the coarse image along y and z, `row` and `positions` the size of
// its planes. Sixteen items, one for each lane, make DOT_ROWS inputs of DOT_OUTPUTS outputs; a block
// has DOT_TEAMS of sixteen.
KERNEL void upsampled_dots(OPERAND(const float, x), OPERAND(const float, dy),
                           OPERAND(const int, first_taps), OPERAND(float, sums),
                           const ConvolutionSizes s, const int taps, const int lead_y,
                           const int lead_z) {
  LOCAL float lanes[DOT_TEAMS][DOT_ROWS * DOT_OUTPUTS][LANES];
  const int group = item(1);
  const int lane = item_of_block(0) % LANES, team = item_of_block(0) / LANES;
  const int outputs = s.out_channels, inputs = s.in_channels;
  const int output_blocks = (outputs + DOT_OUTPUTS - 1) / DOT_OUTPUTS;
  const int input_blocks = (inputs + DOT_ROWS - 1) / DOT_ROWS;
  int rest = block(0) * DOT_TEAMS + team;
  const int o = (rest % output_blocks) * DOT_OUTPUTS;
  rest /= output_blocks;
  const int c = (rest % input_blocks) * DOT_ROWS;
  rest /= input_blocks;
  const int tap = rest % taps;
  const long n = rest / taps;
  const CoarseTap t = coarse_tap(s, AT(first_taps, 0), tap);
  float sum[DOT_ROWS][DOT_OUTPUTS];
  for (int r = 0; r < DOT_ROWS; ++r) {
    for (int i = 0; i < DOT_OUTPUTS; ++i) sum[r][i] = 0.0f;
  }
  const int in_lane = s.pairs ? 2 : 1;  // neighbouring positions
  for (int ox = 0; ox < s.out[0] && n < s.batch; ++ox) {
    const int ix = cell_of(s, 0, ox) + t.tap[0];
    if (phase_of(s, 0, ox) != t.phase[0] || ix < 0 || ix >= s.in[0]) continue;
    GLOBAL const float *image = AT(x, group) + (n * s.in[0] + ix) * s.in[1] * s.in[2] * inputs;
    GLOBAL const float *derivatives =
        AT(dy, group) + (n * s.out[0] + ox) * s.out[1] * s.out[2] * outputs;
    PlaneCell at = {0, 0};
    at = moved(at, 0, lane * in_lane, s.row);
    for (int q = lane * in_lane; q < s.positions; q += LANES * in_lane) {
      float value[2][DOT_ROWS], derivative[2][DOT_OUTPUTS];
      UNROLLED for (int i = 0; i < 2; ++i) {
        if (i >= in_lane) continue;
        const PlaneCell here = moved(at, 0, i, s.row);
        const PlaneCell cell = moved(here, t.tap[1], t.tap[2], s.row);
        const int iy = cell.y - lead_y, iz = cell.z - lead_z;
        const int oy = output_of(s, 1, t.phase[1], here.y - lead_y);
        const int oz = output_of(s, 2, t.phase[2], here.z - lead_z);
        const int is_cell = iy >= 0 && iy < s.in[1] && iz >= 0 && iz < s.in[2];
        const int is_output = oy >= 0 && oz >= 0;
        // Behind the last input or output there are zeros, whose sums are not written.
        load_neighbours(value[i], image + (iy * s.in[2] + iz) * inputs, c, is_cell ? inputs : 0);
        GLOBAL const float *dy_cell = derivatives + (oy * s.out[2] + oz) * outputs;
        load_neighbours(derivative[i], dy_cell, o, is_output ? outputs : 0);
        load_neighbours(derivative[i] + 4, dy_cell, o + 4, is_output ? outputs : 0);
        UNROLLED for (int r = 0; r < DOT_ROWS && s.pairs; ++r) {
          value[i][r] = bfloat16_of(value[i][r]);
        }
        UNROLLED for (int j = 0; j < DOT_OUTPUTS && s.pairs; ++j) {
          derivative[i][j] = bfloat16_of(derivative[i][j]);
        }
      }
      for (int r = 0; r < DOT_ROWS; ++r) {
        for (int j = 0; j < DOT_OUTPUTS; ++j) {
          sum[r][j] = s.pairs ? add_pair(value[0][r], derivative[0][j], value[1][r],
                                         derivative[1][j], sum[r][j])
                              : fma(value[0][r], derivative[0][j], sum[r][j]);
        }
      }
      at = moved(at, 0, LANES * in_lane, s.row);
    }
  }
  for (int r = 0; r < DOT_ROWS; ++r) {
    for (int j = 0; j < DOT_OUTPUTS; ++j) lanes[team][r * DOT_OUTPUTS + j][lane] = sum[r][j];
  }
  BARRIER;
  if (n >= s.batch) return;
  GLOBAL float *to = AT(sums, group) + (n * taps + tap) * (long)inputs * outputs;
  for (int i = lane; i < DOT_ROWS * DOT_OUTPUTS; i += LANES) {
    const int input = c + i / DOT_OUTPUTS, output = o + i % DOT_OUTPUTS;
    if (input < inputs && output < outputs) {
      to[(long)input * outputs + output] = sum_of_lanes(lanes[team][i]);
    }
  }
}
