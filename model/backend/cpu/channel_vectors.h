#pragma once

// Loops over images in which channels are neighbours: value i belongs to channel i % channels.
// Lanes run over values, so numbers per channel are repeated over a period that is a multiple of
// the channels and of the lanes. Through Highway as plane_vectors.h, and under its condition; every
// value and every sum below is one chain of operations that does not depend on the width of
// vectors.

#include <cstdint>

namespace troupe::model::cpu {

// For `count` values: a multiple of `channels`, and of sixteen unless they are too few for that.
std::int64_t channel_period(std::int64_t channels, std::int64_t count);

// For i < count: sums[i % period] += values[i].
void add_values(const float* values, std::int64_t count, std::int64_t period, double* sums);
// squares[i % period] += (values[i] - means[i % period])^2.
void add_squares(const float* values, std::int64_t count, std::int64_t period, const double* means,
                 double* squares);
// y[i] = (x[i] - shift[i % period]) scale[i % period] + plus[i % period].
struct Normalisation {
  std::int64_t count = 0, period = 0;
  const float *shift = nullptr, *scale = nullptr, *plus = nullptr;
};
void normalise(const Normalisation& n, const float* x, float* y);
// With x^ = (x - shift) scale: sums[i % period] += dy[i], products[i % period] += dy[i] x^[i].
// `plus` is not read.
void add_products(const Normalisation& n, const float* x, const float* dy, double* sums,
                  double* products);
// dx[i] = factor[i % period] (dy[i] - mean[i % period] - x^[i] slope[i % period]).
struct NormalisationBackward {
  Normalisation forward;
  const float *factor = nullptr, *mean = nullptr, *slope = nullptr;
};
void normalise_backward(const NormalisationBackward& n, const float* x, const float* dy, float* dx);

}  // namespace troupe::model::cpu
