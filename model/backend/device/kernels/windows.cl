// Operations that move cells (reference/resample.cpp). An item is an element of the result.

KERNEL void pad_forward(OPERAND(const float, x), OPERAND(float, y), const WindowSizes s,
                        const int batch) {
  // s.coarse is the image, s.window the padding before it, s.fine the result.
  const long i = item(0), group = item(1);
  const int channels = s.channels;
  if (i >= (long)batch * s.fine[0] * s.fine[1] * s.fine[2] * channels) return;
  const int c = (int)(i % channels);
  const long cell = i / channels;
  const int z = (int)(cell % s.fine[2]) - s.window[2];
  const int y_ = (int)(cell / s.fine[2] % s.fine[1]) - s.window[1];
  const int x_ = (int)(cell / s.fine[2] / s.fine[1] % s.fine[0]) - s.window[0];
  const long n = cell / s.fine[2] / s.fine[1] / s.fine[0];
  const int inside = x_ >= 0 && x_ < s.coarse[0] && y_ >= 0 && y_ < s.coarse[1] && z >= 0 &&
                     z < s.coarse[2];
  const long from = (((n * s.coarse[0] + x_) * s.coarse[1] + y_) * s.coarse[2] + z) * channels + c;
  AT(y, group)[i] = inside ? AT(x, group)[from] : 0.0f;
}

KERNEL void pad_backward(OPERAND(const float, dy), OPERAND(float, dx), const WindowSizes s,
                         const int batch) {
  const long i = item(0), group = item(1);
  const int channels = s.channels;
  if (i >= (long)batch * s.coarse[0] * s.coarse[1] * s.coarse[2] * channels) return;
  const int c = (int)(i % channels);
  const long cell = i / channels;
  const int z = (int)(cell % s.coarse[2]) + s.window[2];
  const int y = (int)(cell / s.coarse[2] % s.coarse[1]) + s.window[1];
  const int x = (int)(cell / s.coarse[2] / s.coarse[1] % s.coarse[0]) + s.window[0];
  const long n = cell / s.coarse[2] / s.coarse[1] / s.coarse[0];
  AT(dx, group)[i] =
      AT(dy, group)[(((n * s.fine[0] + x) * s.fine[1] + y) * s.fine[2] + z) * channels + c];
}

// coarse = scale x sum of the window.
KERNEL void gather_windows(OPERAND(const float, fine), OPERAND(float, coarse), const WindowSizes s,
                           const int batch) {
  const long i = item(0), group = item(1);
  const int channels = s.channels;
  if (i >= (long)batch * s.coarse[0] * s.coarse[1] * s.coarse[2] * channels) return;
  const int c = (int)(i % channels);
  const long cell = i / channels;
  const int z = (int)(cell % s.coarse[2]);
  const int y = (int)(cell / s.coarse[2] % s.coarse[1]);
  const int x = (int)(cell / s.coarse[2] / s.coarse[1] % s.coarse[0]);
  const long n = cell / s.coarse[2] / s.coarse[1] / s.coarse[0];
  GLOBAL const float *from = AT(fine, group);
  float sum = 0.0f;
  for (int kx = 0; kx < s.window[0]; ++kx) {
    for (int ky = 0; ky < s.window[1]; ++ky) {
      for (int kz = 0; kz < s.window[2]; ++kz) {
        const long fx = x * s.window[0] + kx, fy = y * s.window[1] + ky, fz = z * s.window[2] + kz;
        sum += from[(((n * s.fine[0] + fx) * s.fine[1] + fy) * s.fine[2] + fz) * channels + c];
      }
    }
  }
  AT(coarse, group)[i] = sum * s.scale;
}

// Every fine cell = scale x its window's coarse cell, 0 outside all windows.
KERNEL void scatter_windows(OPERAND(const float, coarse), OPERAND(float, fine),
                            const WindowSizes s, const int batch) {
  const long i = item(0), group = item(1);
  const int channels = s.channels;
  if (i >= (long)batch * s.fine[0] * s.fine[1] * s.fine[2] * channels) return;
  const int c = (int)(i % channels);
  const long cell = i / channels;
  const int z = (int)(cell % s.fine[2]) / s.window[2];
  const int y = (int)(cell / s.fine[2] % s.fine[1]) / s.window[1];
  const int x = (int)(cell / s.fine[2] / s.fine[1] % s.fine[0]) / s.window[0];
  const long n = cell / s.fine[2] / s.fine[1] / s.fine[0];
  const int covered = x < s.coarse[0] && y < s.coarse[1] && z < s.coarse[2];
  const long from = (((n * s.coarse[0] + x) * s.coarse[1] + y) * s.coarse[2] + z) * channels + c;
  AT(fine, group)[i] = covered ? AT(coarse, group)[from] * s.scale : 0.0f;
}
