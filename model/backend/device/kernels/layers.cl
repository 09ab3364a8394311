// Phases, convolutions in groups, parts, and pooling by maximum, as the reference has them
// (reference/phases.cpp, grouped_convolution.cpp, resample.cpp).

// The first channel of a phase's cell, in an image of phases.
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

// The place of a window's first largest cell.
FUNCTION long largest_of_window(GLOBAL const float *x, const PoolSizes s, const Cell window) {
  const Ranges cells = cells_of_window(s, window);
  long largest = -1;
  for (int fx = cells.first[0]; fx < cells.end[0]; ++fx) {
    for (int fy = cells.first[1]; fy < cells.end[1]; ++fy) {
      for (int fz = cells.first[2]; fz < cells.end[2]; ++fz) {
        const long from = place_of_cell(s, window, fx, fy, fz);
        if (largest < 0 || (x[largest] == x[largest] && !(x[from] <= x[largest]))) largest = from;
      }
    }
  }
  return largest;
}
KERNEL void max_pool_forward(OPERAND(const float, x), OPERAND(float, y), const PoolSizes s,
                             const int batch) {
  const int i = item(0), group = item(1);
  if (i >= (long)batch * s.out[0] * s.out[1] * s.out[2] * s.channels) return;
  const Cell window = cell_at(i, s.out[0], s.out[1], s.out[2], s.channels);
  AT(y, group)[i] = AT(x, group)[largest_of_window(AT(x, group), s, window)];
}
// Windows side by side: an item is a window; dx is 0 before.
KERNEL void max_pool_backward(OPERAND(const float, x), OPERAND(const float, dy), OPERAND(float, dx),
                              const PoolSizes s, const int batch) {
  const int i = item(0), group = item(1);
  if (i >= (long)batch * s.out[0] * s.out[1] * s.out[2] * s.channels) return;
  const Cell window = cell_at(i, s.out[0], s.out[1], s.out[2], s.channels);
  AT(dx, group)[largest_of_window(AT(x, group), s, window)] = AT(dy, group)[i];
}
// Other windows: each one's largest cell first, then cells sum the windows whose largest they are.
KERNEL void max_pool_places(OPERAND(const float, x), OPERAND(int, places), const PoolSizes s,
                            const int batch) {
  const int i = item(0), group = item(1);
  if (i >= (long)batch * s.out[0] * s.out[1] * s.out[2] * s.channels) return;
  const Cell window = cell_at(i, s.out[0], s.out[1], s.out[2], s.channels);
  AT(places, group)[i] = (int)largest_of_window(AT(x, group), s, window);
}
KERNEL void max_pool_sums(OPERAND(const int, places), OPERAND(const float, dy), OPERAND(float, dx),
                          const PoolSizes s, const int batch) {
  const int i = item(0), group = item(1);
  if (i >= (long)batch * s.in[0] * s.in[1] * s.in[2] * s.channels) return;
  const Cell cell = cell_at(i, s.in[0], s.in[1], s.in[2], s.channels);
  const Ranges windows = windows_of_cell(s, cell);
  float sum = 0.0f;
  for (int wx = windows.first[0]; wx < windows.end[0]; ++wx) {
    for (int wy = windows.first[1]; wy < windows.end[1]; ++wy) {
      for (int wz = windows.first[2]; wz < windows.end[2]; ++wz) {
        const long window = place_of_window(s, cell, wx, wy, wz);
        if (AT(places, group)[window] == i) sum += AT(dy, group)[window];
      }
    }
  }
  AT(dx, group)[i] = sum;
}
