// Operations that move cells (reference/resample.cpp). An item is an element of the result.

KERNEL void pad_forward(OPERAND(const float, x), OPERAND(float, y), const WindowSizes s,
                        const int batch) {
  // s.coarse is the image, s.window the padding before it, s.fine the result.
  const int i = item(0), group = item(1);
  const int channels = s.channels;
  if (i >= (long)batch * s.fine[0] * s.fine[1] * s.fine[2] * channels) return;
  const Cell to = cell_at(i, s.fine[0], s.fine[1], s.fine[2], channels);
  const int ix = to.x - s.window[0], iy = to.y - s.window[1], iz = to.z - s.window[2];
  const int inside = ix >= 0 && ix < s.coarse[0] && iy >= 0 && iy < s.coarse[1] && iz >= 0 &&
                     iz < s.coarse[2];
  const long from =
      (((to.sample * s.coarse[0] + ix) * s.coarse[1] + iy) * s.coarse[2] + iz) * channels +
      to.channel;
  AT(y, group)[i] = inside ? AT(x, group)[from] : 0.0f;
}

KERNEL void pad_backward(OPERAND(const float, dy), OPERAND(float, dx), const WindowSizes s,
                         const int batch) {
  const int i = item(0), group = item(1);
  const int channels = s.channels;
  if (i >= (long)batch * s.coarse[0] * s.coarse[1] * s.coarse[2] * channels) return;
  const Cell to = cell_at(i, s.coarse[0], s.coarse[1], s.coarse[2], channels);
  const int fx = to.x + s.window[0], fy = to.y + s.window[1], fz = to.z + s.window[2];
  const long from =
      (((to.sample * s.fine[0] + fx) * s.fine[1] + fy) * s.fine[2] + fz) * channels + to.channel;
  AT(dx, group)[i] = AT(dy, group)[from];
}

// coarse = scale x sum of the window.
KERNEL void gather_windows(OPERAND(const float, fine), OPERAND(float, coarse), const WindowSizes s,
                           const int batch) {
  const int i = item(0), group = item(1);
  const int channels = s.channels;
  if (i >= (long)batch * s.coarse[0] * s.coarse[1] * s.coarse[2] * channels) return;
  const Cell to = cell_at(i, s.coarse[0], s.coarse[1], s.coarse[2], channels);
  GLOBAL const float *from = AT(fine, group);
  float sum = 0.0f;
  for (int kx = 0; kx < s.window[0]; ++kx) {
    for (int ky = 0; ky < s.window[1]; ++ky) {
      for (int kz = 0; kz < s.window[2]; ++kz) {
        const int fx = to.x * s.window[0] + kx, fy = to.y * s.window[1] + ky,
                  fz = to.z * s.window[2] + kz;
        sum += from[(((to.sample * s.fine[0] + fx) * s.fine[1] + fy) * s.fine[2] + fz) * channels +
                    to.channel];
      }
    }
  }
  AT(coarse, group)[i] = sum * s.scale;
}

// Every fine cell = scale x its window's coarse cell, 0 outside all windows.
KERNEL void scatter_windows(OPERAND(const float, coarse), OPERAND(float, fine),
                            const WindowSizes s, const int batch) {
  const int i = item(0), group = item(1);
  const int channels = s.channels;
  if (i >= (long)batch * s.fine[0] * s.fine[1] * s.fine[2] * channels) return;
  const Cell to = cell_at(i, s.fine[0], s.fine[1], s.fine[2], channels);
  const int cx = to.x / s.window[0], cy = to.y / s.window[1], cz = to.z / s.window[2];
  const int covered = cx < s.coarse[0] && cy < s.coarse[1] && cz < s.coarse[2];
  const long from =
      (((to.sample * s.coarse[0] + cx) * s.coarse[1] + cy) * s.coarse[2] + cz) * channels +
      to.channel;
  AT(fine, group)[i] = covered ? AT(coarse, group)[from] * s.scale : 0.0f;
}

// Cells of an image, or windows, from `first` up to `end` along each axis.
typedef struct {
  int first[3], end[3];
} Ranges;

FUNCTION int count_of(const Ranges r) {
  return (r.end[0] - r.first[0]) * (r.end[1] - r.first[1]) * (r.end[2] - r.first[2]);
}
// The cells that a window has inside the image.
FUNCTION Ranges cells_of_window(const PoolSizes s, const Cell window) {
  const int at[3] = {window.x, window.y, window.z};
  Ranges cells;
  for (int axis = 0; axis < 3; ++axis) {
    const int first = at[axis] * s.stride[axis] - s.before[axis], end = first + s.size[axis];
    cells.first[axis] = first > 0 ? first : 0;
    cells.end[axis] = end < s.in[axis] ? end : s.in[axis];
  }
  return cells;
}
// The windows that have a cell of the image.
FUNCTION Ranges windows_of_cell(const PoolSizes s, const Cell cell) {
  const int at[3] = {cell.x, cell.y, cell.z};
  Ranges windows;
  for (int axis = 0; axis < 3; ++axis) {
    const int place = at[axis] + s.before[axis], too_far = place - s.size[axis];
    windows.first[axis] = too_far < 0 ? 0 : too_far / s.stride[axis] + 1;
    const int end = place / s.stride[axis] + 1;
    windows.end[axis] = end < s.out[axis] ? end : s.out[axis];
  }
  return windows;
}
// The places of a cell of the image, and of a window among all.
FUNCTION long place_of_cell(const PoolSizes s, const Cell of, int x, int y, int z) {
  return (((of.sample * s.in[0] + x) * s.in[1] + y) * s.in[2] + z) * s.channels + of.channel;
}
FUNCTION long place_of_window(const PoolSizes s, const Cell of, int x, int y, int z) {
  return (((of.sample * s.out[0] + x) * s.out[1] + y) * s.out[2] + z) * s.channels + of.channel;
}
// 1 / count, rounded once: a quotient of doubles is the nearest one, on every device.
FUNCTION float mean_scale(const Ranges cells) { return (float)(1.0 / (double)count_of(cells)); }

// Means of windows that overlap, or have cells outside.
KERNEL void average_pool_forward(OPERAND(const float, x), OPERAND(float, y), const PoolSizes s,
                                 const int batch) {
  const int i = item(0), group = item(1);
  if (i >= (long)batch * s.out[0] * s.out[1] * s.out[2] * s.channels) return;
  const Cell window = cell_at(i, s.out[0], s.out[1], s.out[2], s.channels);
  const Ranges cells = cells_of_window(s, window);
  float sum = 0.0f;
  for (int fx = cells.first[0]; fx < cells.end[0]; ++fx) {
    for (int fy = cells.first[1]; fy < cells.end[1]; ++fy) {
      for (int fz = cells.first[2]; fz < cells.end[2]; ++fz) {
        sum += AT(x, group)[place_of_cell(s, window, fx, fy, fz)];
      }
    }
  }
  AT(y, group)[i] = sum * mean_scale(cells);
}

KERNEL void average_pool_backward(OPERAND(const float, dy), OPERAND(float, dx), const PoolSizes s,
                                  const int batch) {
  const int i = item(0), group = item(1);
  if (i >= (long)batch * s.in[0] * s.in[1] * s.in[2] * s.channels) return;
  const Cell cell = cell_at(i, s.in[0], s.in[1], s.in[2], s.channels);
  const Ranges windows = windows_of_cell(s, cell);
  Cell window = cell;
  float sum = 0.0f;
  for (window.x = windows.first[0]; window.x < windows.end[0]; ++window.x) {
    for (window.y = windows.first[1]; window.y < windows.end[1]; ++window.y) {
      for (window.z = windows.first[2]; window.z < windows.end[2]; ++window.z) {
        const float scale = mean_scale(cells_of_window(s, window));
        sum += AT(dy, group)[place_of_window(s, cell, window.x, window.y, window.z)] * scale;
      }
    }
  }
  AT(dx, group)[i] = sum;
}
