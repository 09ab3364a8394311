#pragma once

// The inner loops of our own convolutions: products of short rows with eight lanes, in AVX2 with
// fused multiply-add. A row of an image in ndhwc is contiguous over (z, channel), and so is a row
// (kz, channel) of a kernel; hence the cells of an output row are
//   out[z][lane] = sum over steps s of row[z x channels + s] kernel[s][lane],   s = (kz, channel),
// a matrix product whose left side is the image itself, read with overlap. The same loop with the
// roles of z and s exchanged gives the gradient of the kernel. With one output channel the lanes
// run over s instead.
//
// Every lane is one chain of fused multiply-adds in ascending s, so the bits do not depend on the
// blocking chosen here.

#include <cstdint>

#include "model/network.h"

namespace troupe::model::cpu {

inline constexpr std::int64_t kLanes = 8;

// Whether this host has the instructions; without them nothing below may be called.
bool rows_supported();

// For m < rows, group g and step s in ascending order:
//   a[m row_stride + g group_stride + s step_stride] meets b[g steps + s][0..7] and goes to
//   out[m][0..7].
// A group is a row of the image: the sums stay in registers over all of them.
struct RowProduct {
  const float* a = nullptr;
  std::int64_t row_stride = 0, step_stride = 0, group_stride = 0;
  const float* b = nullptr;  // eight floats per entry
  std::int64_t rows = 0, steps = 0, groups = 0;
  float* out = nullptr;  // eight floats per entry
};
// out[m][lane] += a b, one after the other.
void add_products(const RowProduct& product);
// out[m][lane] += the sum of all a b, formed from 0: for long sums over many calls, whose error it
// keeps small.
void add_sums_of_products(const RowProduct& product);

// The parts of a dot product: as add_products, but of `steps` consecutive numbers (step_stride is
// 1) number s goes to lane s % 8. Each group of b is filled up with zeros to a multiple of 8; a is
// not read beyond `steps`.
void add_dot_products(const RowProduct& product);

// y[cell][channel] = activation(sums[cell][channel] + bias[channel]) for up to eight channels; bias
// may be null. Activations: kLinear, kRelu, kLeakyRelu; NaN stays NaN.
void finish_cells(const float* sums, std::int64_t cells, std::int64_t channels, const float* bias,
                  const Activation& activation, float* y);
// y[cell] = activation(sum of the eight lanes of sums[cell] + bias), added as ((0 + 4) + (2 + 6)) +
// ((1 + 5) + (3 + 7)).
void finish_dots(const float* sums, std::int64_t cells, const float* bias,
                 const Activation& activation, float* y);

}  // namespace troupe::model::cpu
