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
