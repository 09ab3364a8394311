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

// collapsed: [coarse tap of a phase][in][out], summed in double.
KERNEL void upsampled_collapse(OPERAND(const float, kernel_), OPERAND(const int, first_taps),
                               OPERAND(float, collapsed), const ConvolutionSizes s,
                               const int taps) {
  const int channels = s.in_channels * s.out_channels;
  if (item(0) >= (long)taps * channels) return;
  const int number = (int)(item(0) % channels);
  const CoarseTap t = coarse_tap(s, AT(first_taps, 0), (int)(item(0) / channels));
  int begin[3], end[3];
  for (int axis = 0; axis < 3; ++axis) {
    const int from = t.tap[axis] * s.factor[axis] - t.phase[axis];
    begin[axis] = from > 0 ? from : 0;
    end[axis] = from + s.factor[axis] < s.taps[axis] ? from + s.factor[axis]
                                                         : s.taps[axis];
  }
  double sum = 0.0;
  for (int x = begin[0]; x < end[0]; ++x) {
    for (int y = begin[1]; y < end[1]; ++y) {
      for (int z = begin[2]; z < end[2]; ++z) {
        const long tap = (x * s.taps[1] + y) * s.taps[2] + z;
        sum += (double)AT(kernel_, 0)[tap * channels + number];
      }
    }
  }
  AT(collapsed, 0)[item(0)] = s.pairs ? bfloat16_of((float)sum) : (float)sum;
}

// The transposed map, for the gradient.
KERNEL void upsampled_expand(OPERAND(const float, gradient), OPERAND(const int, first_taps),
                             OPERAND(float, dkernel), const ConvolutionSizes s) {
  const long i = item(0), group = item(1);
  const int channels = s.in_channels * s.out_channels;
  if (i >= (long)s.taps[0] * s.taps[1] * s.taps[2] * channels) return;
  const int number = (int)(i % channels), tap = (int)(i / channels);
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

KERNEL void upsampled_forward(OPERAND(const float, x), OPERAND(const float, collapsed),
                              OPERAND(const int, first_taps), OPERAND(const float, bias),
                              OPERAND(float, y), const ConvolutionSizes s) {
  const long group = item(1);
  const int outputs = s.out_channels, inputs = s.in_channels;
  if (item(0) >= (long)s.batch * s.out[0] * s.out[1] * s.out[2] * outputs) return;
  const Cell to = cell_at(item(0), s.out[0], s.out[1], s.out[2], outputs);
  const int ox = to.x, oy = to.y, oz = to.z, o = to.channel;
  const int fx = phase_of(s, 0, ox), fy = phase_of(s, 1, oy), fz = phase_of(s, 2, oz);
  const int cx = cell_of(s, 0, ox), cy = cell_of(s, 1, oy), cz = cell_of(s, 2, oz);
  const int x_taps = phase_taps(s, 0, fx), y_taps = phase_taps(s, 1, fy),
            z_taps = phase_taps(s, 2, fz);
  GLOBAL const float *weights =
      AT(collapsed, 0) +
      (long)AT(first_taps, 0)[phase_number(s, fx, fy, fz)] * inputs * outputs + o;
  GLOBAL const float *image = AT(x, group) + to.sample * s.in[0] * s.in[1] * s.in[2] * inputs;
  float sum = 0.0f;
  for (int jx = 0; jx < x_taps; ++jx) {
    const int ix = cx + jx;
    if (ix < 0 || ix >= s.in[0]) continue;  // left out; along y and z there are zeros
    for (int jy = 0; jy < y_taps; ++jy) {
      for (int jz = 0; jz < z_taps; ++jz) {
        const int iy = cy + jy, iz = cz + jz;
        const int inside = iy >= 0 && iy < s.in[1] && iz >= 0 && iz < s.in[2];
        GLOBAL const float *value =
            image + (((long)ix * s.in[1] + iy) * s.in[2] + iz) * inputs;
        GLOBAL const float *weight =
            weights + (long)((jx * y_taps + jy) * z_taps + jz) * inputs * outputs;
        if (s.pairs) {
          for (int c = 0; c < inputs; c += 2) {
            const int two = c + 1 < inputs;
            sum = add_pair(inside ? bfloat16_of(value[c]) : 0.0f, weight[(long)c * outputs],
                           inside && two ? bfloat16_of(value[c + 1]) : 0.0f,
                           two ? weight[(long)(c + 1) * outputs] : 0.0f, sum);
          }
          continue;
        }
        for (int c = 0; c < inputs; ++c) {
          sum = fma(inside ? value[c] : 0.0f, weight[(long)c * outputs], sum);
        }
      }
    }
  }
  AT(y, group)[item(0)] = finished(s.activation, sum, s.bias ? AT(bias, 0)[o] : 0.0f);
}

KERNEL void upsampled_backward_input(OPERAND(const float, dy), OPERAND(const float, collapsed),
                                     OPERAND(const int, first_taps), OPERAND(float, dx),
                                     const ConvolutionSizes s) {
  const long group = item(1);
  const int outputs = s.out_channels, inputs = s.in_channels;
  if (item(0) >= (long)s.batch * s.in[0] * s.in[1] * s.in[2] * inputs) return;
  const Cell to = cell_at(item(0), s.in[0], s.in[1], s.in[2], inputs);
  const int ix = to.x, iy = to.y, iz = to.z, c = to.channel;
  GLOBAL const float *derivatives =
      AT(dy, group) + to.sample * s.out[0] * s.out[1] * s.out[2] * outputs;
  float sum = 0.0f;
  for (int fx = 0; fx < s.factor[0]; ++fx) {
    for (int jx = 0; jx < phase_taps(s, 0, fx); ++jx) {
      const int ox = output_of(s, 0, fx, ix - jx);
      for (int fy = 0; fy < s.factor[1]; ++fy) {
        for (int fz = 0; fz < s.factor[2]; ++fz) {
          const int y_taps = phase_taps(s, 1, fy), z_taps = phase_taps(s, 2, fz);
          const long first = AT(first_taps, 0)[phase_number(s, fx, fy, fz)];
          for (int jy = 0; jy < y_taps; ++jy) {
            for (int jz = 0; jz < z_taps; ++jz) {
              const int oy = output_of(s, 1, fy, iy - jy), oz = output_of(s, 2, fz, iz - jz);
              const int inside = ox >= 0 && oy >= 0 && oz >= 0;
              GLOBAL const float *value =
                  derivatives + (((long)ox * s.out[1] + oy) * s.out[2] + oz) * outputs;
              GLOBAL const float *weight =
                  AT(collapsed, 0) +
                  ((first + (jx * y_taps + jy) * z_taps + jz) * inputs + c) * outputs;
              if (s.pairs) {
                for (int o = 0; o < outputs; o += 2) {
                  const int two = o + 1 < outputs;
                  sum = add_pair(inside ? bfloat16_of(value[o]) : 0.0f, weight[o],
                                 inside && two ? bfloat16_of(value[o + 1]) : 0.0f,
                                 two ? weight[o + 1] : 0.0f, sum);
                }
                continue;
              }
              for (int o = 0; o < outputs; ++o) {
                sum = fma(inside ? value[o] : 0.0f, weight[o], sum);
              }
            }
          }
        }
      }
    }
  }
  AT(dx, group)[item(0)] = sum;
}

// Sums over the positions of all x planes of a phase, in sixteen lanes: [sample][coarse tap][in][out].
// `lead` are the zero cells before the coarse image along y and z, `row` and `positions` the size of
// its planes. A block of sixteen items, one for each lane, makes one sum.
KERNEL void upsampled_dots(OPERAND(const float, x), OPERAND(const float, dy),
                           OPERAND(const int, first_taps), OPERAND(float, sums),
                           const ConvolutionSizes s, const int taps, const int lead_y,
                           const int lead_z) {
  LOCAL float lanes[LANES];
  const long group = item(1);
  const int lane = item_of_block(0);
  const int outputs = s.out_channels, inputs = s.in_channels;
  const int o = (int)(block(0) % outputs), c = (int)(block(0) / outputs % inputs);
  const int tap = (int)(block(0) / outputs / inputs % taps);
  const long n = block(0) / outputs / inputs / taps;
  const CoarseTap t = coarse_tap(s, AT(first_taps, 0), tap);
  GLOBAL const float *image = AT(x, group) + n * s.in[0] * s.in[1] * s.in[2] * inputs + c;
  GLOBAL const float *derivatives =
      AT(dy, group) + n * s.out[0] * s.out[1] * s.out[2] * outputs + o;
  float sum = 0.0f;
  for (int ox = 0; ox < s.out[0]; ++ox) {
    const int ix = cell_of(s, 0, ox) + t.tap[0];
    if (phase_of(s, 0, ox) != t.phase[0] || ix < 0 || ix >= s.in[0]) continue;
    const int in_lane = s.pairs ? 2 : 1;  // neighbouring positions
    for (int first = lane * in_lane; first < s.positions; first += LANES * in_lane) {
      float value[2], derivative[2];
      for (int i = 0; i < in_lane; ++i) {
        const int q = first + i;
        const int oy = output_of(s, 1, t.phase[1], q / s.row - lead_y);
        const int oz = output_of(s, 2, t.phase[2], q % s.row - lead_z);
        const int place = q + t.tap[1] * s.row + t.tap[2];
        const int iy = place / s.row - lead_y, iz = place % s.row - lead_z;
        const int is_cell = iy >= 0 && iy < s.in[1] && iz >= 0 && iz < s.in[2];
        value[i] = is_cell ? image[(((long)ix * s.in[1] + iy) * s.in[2] + iz) * inputs] : 0.0f;
        derivative[i] =
            oy >= 0 && oz >= 0
                ? derivatives[(((long)ox * s.out[1] + oy) * s.out[2] + oz) * outputs]
                : 0.0f;
      }
      sum = s.pairs ? add_pair(bfloat16_of(value[0]), bfloat16_of(derivative[0]),
                               bfloat16_of(value[1]), bfloat16_of(derivative[1]), sum)
                    : fma(value[0], derivative[0], sum);
    }
  }
  lanes[lane] = sum;
  BARRIER;
  if (lane > 0) return;
  AT(sums, group)[block(0)] = sum_of_lanes(lanes);
}
