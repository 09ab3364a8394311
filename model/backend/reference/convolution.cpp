#include "model/backend/reference/kernels.h"

#include <algorithm>

namespace troupe::model::reference {
namespace {

bool upsamples(const ConvolutionGeometry& g) { return g.upsample != Extent{1, 1, 1}; }

// The convolution of the upsampled image.
ConvolutionGeometry of_fine_image(ConvolutionGeometry g) {
  for (std::size_t axis = 0; axis < 3; ++axis) g.in[axis] *= g.upsample[axis];
  g.upsample = {1, 1, 1};
  return g;
}
std::int64_t fine_image(const ConvolutionGeometry& g) {
  return upsamples(g) ? g.batch * cells(of_fine_image(g).in) * g.in_channels : 0;
}

// The image as the convolution reads it: upsampled into `fine`, or operand 0 itself.
template <class T>
const T* upsampled(const ConvolutionGeometry& g, const KernelCall& call, T* fine) {
  if (!upsamples(g)) return call.operand<const T>(0);
  void* operands[] = {call.operands[0], fine};
  run<T>(UpsampleForward{g.batch, g.in_channels, g.in, g.upsample}, {operands, call.random});
  return fine;
}

// Output positions of one axis whose input position out + k - pad lies in the image.
struct Range {
  std::int64_t begin, end;
};
Range inside(const ConvolutionGeometry& g, int axis, std::int64_t k) {
  const std::int64_t shift = k - g.pad_before[axis];
  return {std::max<std::int64_t>(0, -shift),
          std::min<std::int64_t>(g.out[axis], g.in[axis] - shift)};
}

// row[z] += x[z, c] kernel[c] for a row of cells, c one input channel.
template <class T>
void add_row(const T* __restrict x, std::int64_t x_step, const T* __restrict kernel,
             std::int64_t channels, std::int64_t count, T* __restrict row) {
  if (channels == 1) {
    const T factor = kernel[0];
    for (std::int64_t z = 0; z < count; ++z) row[z] += x[z * x_step] * factor;
    return;
  }
  for (std::int64_t z = 0; z < count; ++z) {
    const T value = x[z * x_step];
    for (std::int64_t c = 0; c < channels; ++c) row[z * channels + c] += value * kernel[c];
  }
}

// One output row (all z, all channels) of y = conv(x).
template <class T>
void correlate_row(const ConvolutionGeometry& g, const T* x, const T* kernel, std::int64_t ox,
                   std::int64_t oy, T* row) {
  std::fill_n(row, g.out[2] * g.out_channels, T{0});
  for (std::int64_t kx = 0; kx < g.kernel[0]; ++kx) {
    const std::int64_t ix = ox + kx - g.pad_before[0];
    if (ix < 0 || ix >= g.in[0]) continue;
    for (std::int64_t ky = 0; ky < g.kernel[1]; ++ky) {
      const std::int64_t iy = oy + ky - g.pad_before[1];
      if (iy < 0 || iy >= g.in[1]) continue;
      for (std::int64_t kz = 0; kz < g.kernel[2]; ++kz) {
        const Range z = inside(g, 2, kz);
        const std::int64_t iz = z.begin + kz - g.pad_before[2];
        const T* in = x + ((ix * g.in[1] + iy) * g.in[2] + iz) * g.in_channels;
        const T* tap =
            kernel + ((kx * g.kernel[1] + ky) * g.kernel[2] + kz) * g.in_channels * g.out_channels;
        for (std::int64_t c = 0; c < g.in_channels; ++c) {
          add_row(in + c, g.in_channels, tap + c * g.out_channels, g.out_channels, z.end - z.begin,
                  row + z.begin * g.out_channels);
        }
      }
    }
  }
}

template <class T>
void correlate(const ConvolutionGeometry& g, const T* x, const T* kernel, T* y) {
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t ox = 0; ox < g.out[0]; ++ox) {
      for (std::int64_t oy = 0; oy < g.out[1]; ++oy) {
        correlate_row(g, x + n * cells(g.in) * g.in_channels, kernel, ox, oy,
                      y + ((n * g.out[0] + ox) * g.out[1] + oy) * g.out[2] * g.out_channels);
      }
    }
  }
}

// sum[ci, co] += x[z, ci] dy[z, co] over a row of cells.
template <class T>
void add_outer_products(const T* __restrict x, std::int64_t in_channels, const T* __restrict dy,
                        std::int64_t out_channels, std::int64_t count, T* __restrict sum) {
  for (std::int64_t z = 0; z < count; ++z) {
    for (std::int64_t ci = 0; ci < in_channels; ++ci) {
      const T value = x[z * in_channels + ci];
      T* __restrict row = sum + ci * out_channels;
      const T* __restrict gradient = dy + z * out_channels;
      for (std::int64_t co = 0; co < out_channels; ++co) row[co] += value * gradient[co];
    }
  }
}

// The gradient of the kernel at one position (kx, ky, kz): in_channels x out_channels numbers.
template <class T>
void gradient_at(const ConvolutionGeometry& g, const Extent& k, const T* x, const T* dy, T* plane,
                 double* total) {
  const std::int64_t size = g.in_channels * g.out_channels;
  const Range rx = inside(g, 0, k[0]), ry = inside(g, 1, k[1]), rz = inside(g, 2, k[2]);
  std::fill_n(total, size, 0.0);
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t ox = rx.begin; ox < rx.end; ++ox) {
      // The products of one x plane are added in T, and planes in double, so that rounding does not
      // grow with their number.
      std::fill_n(plane, size, T{0});
      for (std::int64_t oy = ry.begin; oy < ry.end; ++oy) {
        const std::int64_t ix = ox + k[0] - g.pad_before[0], iy = oy + k[1] - g.pad_before[1],
                           iz = rz.begin + k[2] - g.pad_before[2];
        add_outer_products(
            x + (((n * g.in[0] + ix) * g.in[1] + iy) * g.in[2] + iz) * g.in_channels, g.in_channels,
            dy + (((n * g.out[0] + ox) * g.out[1] + oy) * g.out[2] + rz.begin) * g.out_channels,
            g.out_channels, rz.end - rz.begin, plane);
      }
      for (std::int64_t i = 0; i < size; ++i) total[i] += static_cast<double>(plane[i]);
    }
  }
}

// dbias[c] = sum of column c of dy (rows, channels), in double; `sums` has room for `channels`.
template <class T>
void sum_columns(const T* dy, std::int64_t rows, std::int64_t channels, double* sums, T* dbias) {
  std::fill_n(sums, channels, 0.0);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < channels; ++c) {
      sums[c] += static_cast<double>(dy[r * channels + c]);
    }
  }
  for (std::int64_t c = 0; c < channels; ++c) dbias[c] = static_cast<T>(sums[c]);
}

}  // namespace

// The derivative of a cross-correlation with stride 1 is a cross-correlation with the mirrored
// kernel. Padding becomes what the kernel reaches beyond the image on the other side.
ConvolutionGeometry mirrored(const ConvolutionGeometry& geometry) {
  ConvolutionGeometry m = geometry;
  m.in = geometry.out;
  m.out = geometry.in;
  m.in_channels = geometry.out_channels;
  m.out_channels = geometry.in_channels;
  m.bias = false;
  for (int axis = 0; axis < 3; ++axis) {
    m.pad_before[axis] = geometry.kernel[axis] - 1 - geometry.pad_before[axis];
    m.pad_after[axis] = geometry.kernel[axis] - 1 - geometry.pad_after[axis];
  }
  return m;
}

template <class T>
void mirror_kernel(const ConvolutionGeometry& g, const T* kernel, T* out) {
  const std::int64_t taps = cells(g.kernel);
  for (std::int64_t tap = 0; tap < taps; ++tap) {  // reversing the flat index mirrors all axes
    const T* from = kernel + (taps - 1 - tap) * g.in_channels * g.out_channels;
    T* to = out + tap * g.in_channels * g.out_channels;
    for (std::int64_t co = 0; co < g.out_channels; ++co) {
      for (std::int64_t ci = 0; ci < g.in_channels; ++ci) {
        to[co * g.in_channels + ci] = from[ci * g.out_channels + co];
      }
    }
  }
}

template <class T>
void run(const ConvolutionForward& convolution, const KernelCall& call) {
  const ConvolutionGeometry g = of_fine_image(convolution.geometry);
  auto* y = call.operand<T>(3);
  const T* x = upsampled(convolution.geometry, call, reinterpret_cast<T*>(call.scratch));
  correlate(g, x, call.operand<const T>(1), y);
  const std::int64_t rows = g.batch * cells(g.out);
  if (g.bias) {
    const auto* bias = call.operand<const T>(2);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < g.out_channels; ++c) y[r * g.out_channels + c] += bias[c];
    }
  }
  activate(convolution.activation, y, y, rows * g.out_channels);
}

template <class T>
void run(const ConvolutionBackwardInput& convolution, const KernelCall& call) {
  const ConvolutionGeometry& geometry = convolution.geometry;
  const ConvolutionGeometry g = of_fine_image(geometry);
  auto* fine = reinterpret_cast<T*>(call.scratch);
  T* kernel = fine + fine_image(geometry);
  auto* dx = call.operand<T>(2);
  mirror_kernel(g, call.operand<const T>(1), kernel);
  correlate(mirrored(g), call.operand<const T>(0), kernel, upsamples(geometry) ? fine : dx);
  if (!upsamples(geometry)) return;
  void* operands[] = {fine, dx};
  run<T>(UpsampleBackward{g.batch, g.in_channels, geometry.in, geometry.upsample},
         {operands, call.random});
}

std::size_t scratch_bytes(const ConvolutionForward& convolution, std::size_t element) {
  return static_cast<std::size_t>(fine_image(convolution.geometry)) * element;
}

std::size_t scratch_bytes(const ConvolutionBackwardInput& convolution, std::size_t element) {
  const ConvolutionGeometry& g = convolution.geometry;
  return static_cast<std::size_t>(fine_image(g) +
                                  cells(g.kernel) * g.in_channels * g.out_channels) *
         element;
}

template <class T>
void run(const ConvolutionBackwardParameters& convolution, const KernelCall& call) {
  const ConvolutionGeometry g = of_fine_image(convolution.geometry);
  const auto* dy = call.operand<const T>(1);
  auto* dkernel = call.operand<T>(2);
  const std::int64_t size = g.in_channels * g.out_channels;
  // Scratch holds, one behind the other, sums in double, the sums of one plane and the upsampled
  // image.
  auto* total = reinterpret_cast<double*>(call.scratch);
  auto* plane = reinterpret_cast<T*>(total + size);
  const T* x = upsampled(convolution.geometry, call, plane + size);
  for (std::int64_t kx = 0; kx < g.kernel[0]; ++kx) {
    for (std::int64_t ky = 0; ky < g.kernel[1]; ++ky) {
      for (std::int64_t kz = 0; kz < g.kernel[2]; ++kz) {
        gradient_at(g, {kx, ky, kz}, x, dy, plane, total);
        T* out = dkernel + ((kx * g.kernel[1] + ky) * g.kernel[2] + kz) * size;
        for (std::int64_t i = 0; i < size; ++i) out[i] = static_cast<T>(total[i]);
      }
    }
  }
  if (g.bias) {
    sum_columns(dy, g.batch * cells(g.out), g.out_channels, total, call.operand<T>(3));
  }
}

std::size_t scratch_bytes(const ConvolutionBackwardParameters& convolution, std::size_t element) {
  const ConvolutionGeometry& g = convolution.geometry;
  return static_cast<std::size_t>(g.in_channels * g.out_channels) * (sizeof(double) + element) +
         static_cast<std::size_t>(fine_image(g)) * element;
}

TROUPE_INSTANTIATE_RUN(ConvolutionForward);
TROUPE_INSTANTIATE_RUN(ConvolutionBackwardInput);
TROUPE_INSTANTIATE_RUN(ConvolutionBackwardParameters);
template void mirror_kernel(const ConvolutionGeometry&, const float*, float*);
template void mirror_kernel(const ConvolutionGeometry&, const double*, double*);

}  // namespace troupe::model::reference
