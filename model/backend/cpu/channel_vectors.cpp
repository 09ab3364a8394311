#include "model/backend/cpu/channel_vectors.h"

#include <cmath>
#include <numeric>

#include "runtime/base/error.h"

// This file is compiled once for each kind of vector, as plane_vectors.cpp is.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/backend/cpu/channel_vectors.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace troupe::model::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Floats>;
using Doubles = hn::CappedTag<double, 8>;
using HalfFloats = hn::Rebind<float, Doubles>;
constexpr std::int64_t kLanes = hn::MaxLanes(Floats());
constexpr std::int64_t kDoubleLanes = hn::MaxLanes(Doubles());

// Calls vectors(i, place in the period) for whole vectors of `lanes` values, then single(i, place)
// for the rest.
template <class Vectors, class Single>
HWY_INLINE void over_periods(std::int64_t count, std::int64_t period, std::int64_t lanes,
                             const Vectors& vectors, const Single& single) {
  std::int64_t i = 0;
  if (period % lanes == 0) {
    for (; i + period <= count; i += period) {
      for (std::int64_t place = 0; place < period; place += lanes) vectors(i + place, place);
    }
  }
  for (std::int64_t place = 0; i < count; ++i, place = place + 1 < period ? place + 1 : 0) {
    single(i, place);
  }
}

HWY_INLINE hn::Vec<Doubles> load_doubles(const float* from) {
  return hn::PromoteTo(Doubles(), hn::LoadU(HalfFloats(), from));
}

void add_values(const float* values, std::int64_t count, std::int64_t period, double* sums) {
  const Doubles tag;
  over_periods(
      count, period, kDoubleLanes,
      [&](std::int64_t i, std::int64_t place) {
        const auto sum = hn::Add(hn::LoadU(tag, sums + place), load_doubles(values + i));
        hn::StoreU(sum, tag, sums + place);
      },
      [&](std::int64_t i, std::int64_t place) { sums[place] += static_cast<double>(values[i]); });
}

void add_squares(const float* values, std::int64_t count, std::int64_t period, const double* means,
                 double* squares) {
  const Doubles tag;
  over_periods(
      count, period, kDoubleLanes,
      [&](std::int64_t i, std::int64_t place) {
        const auto deviation = hn::Sub(load_doubles(values + i), hn::LoadU(tag, means + place));
        const auto sum = hn::MulAdd(deviation, deviation, hn::LoadU(tag, squares + place));
        hn::StoreU(sum, tag, squares + place);
      },
      [&](std::int64_t i, std::int64_t place) {
        const double deviation = static_cast<double>(values[i]) - means[place];
        squares[place] = std::fma(deviation, deviation, squares[place]);
      });
}

void normalise(const Normalisation& n, const float* x, float* y) {
  const Floats tag;
  over_periods(
      n.count, n.period, kLanes,
      [&](std::int64_t i, std::int64_t place) {
        const auto at = [&](const float* values) { return hn::LoadU(tag, values + place); };
        const Vector centred = hn::Sub(hn::LoadU(tag, x + i), at(n.shift));
        hn::StoreU(hn::MulAdd(centred, at(n.scale), at(n.plus)), tag, y + i);
      },
      [&](std::int64_t i, std::int64_t place) {
        y[i] = std::fma(x[i] - n.shift[place], n.scale[place], n.plus[place]);
      });
}

// A normalised value is formed in float, as normalise_backward() forms it again, and only then
// widened. Values outside of whole vectors take the same steps, to the same bits.
void add_products(const Normalisation& n, const float* x, const float* dy, double* sums,
                  double* products) {
  const Doubles tag;
  const HalfFloats half;
  over_periods(
      n.count, n.period, kDoubleLanes,
      [&](std::int64_t i, std::int64_t place) {
        const auto at = [&](const float* values) { return hn::LoadU(half, values + place); };
        const auto normalised = hn::Mul(hn::Sub(hn::LoadU(half, x + i), at(n.shift)), at(n.scale));
        const auto derivative = load_doubles(dy + i);
        hn::StoreU(hn::Add(hn::LoadU(tag, sums + place), derivative), tag, sums + place);
        hn::StoreU(hn::MulAdd(derivative, hn::PromoteTo(tag, normalised),
                              hn::LoadU(tag, products + place)),
                   tag, products + place);
      },
      [&](std::int64_t i, std::int64_t place) {
        const float normalised = (x[i] - n.shift[place]) * n.scale[place];
        sums[place] += static_cast<double>(dy[i]);
        products[place] =
            std::fma(static_cast<double>(dy[i]), static_cast<double>(normalised), products[place]);
      });
}

void normalise_backward(const NormalisationBackward& n, const float* x, const float* dy,
                        float* dx) {
  const Floats tag;
  const Normalisation& f = n.forward;
  over_periods(
      f.count, f.period, kLanes,
      [&](std::int64_t i, std::int64_t place) {
        const auto at = [&](const float* values) { return hn::LoadU(tag, values + place); };
        const Vector normalised = hn::Mul(hn::Sub(hn::LoadU(tag, x + i), at(f.shift)), at(f.scale));
        const Vector centred =
            hn::NegMulAdd(normalised, at(n.slope), hn::Sub(hn::LoadU(tag, dy + i), at(n.mean)));
        hn::StoreU(hn::Mul(at(n.factor), centred), tag, dx + i);
      },
      [&](std::int64_t i, std::int64_t place) {
        const float normalised = (x[i] - f.shift[place]) * f.scale[place];
        const float centred = std::fma(-normalised, n.slope[place], dy[i] - n.mean[place]);
        dx[i] = n.factor[place] * centred;
      });
}

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::model::cpu {

HWY_EXPORT(add_values);
HWY_EXPORT(add_squares);
HWY_EXPORT(normalise);
HWY_EXPORT(add_products);
HWY_EXPORT(normalise_backward);

std::int64_t channel_period(std::int64_t channels, std::int64_t count) {
  CHECK(channels > 0, "values without channels");
  // Several vectors, so that a sum does not wait for the addition before it.
  constexpr std::int64_t kVectors = 4;
  const std::int64_t period = std::lcm(channels, std::int64_t{16});
  if (period > count) return channels;
  return period >= 16 * kVectors || period * kVectors > count ? period : period * kVectors;
}

void add_values(const float* values, std::int64_t count, std::int64_t period, double* sums) {
  HWY_DYNAMIC_DISPATCH(add_values)(values, count, period, sums);
}

void add_squares(const float* values, std::int64_t count, std::int64_t period, const double* means,
                 double* squares) {
  HWY_DYNAMIC_DISPATCH(add_squares)(values, count, period, means, squares);
}

void normalise(const Normalisation& n, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(normalise)(n, x, y);
}

void add_products(const Normalisation& n, const float* x, const float* dy, double* sums,
                  double* products) {
  HWY_DYNAMIC_DISPATCH(add_products)(n, x, dy, sums, products);
}

void normalise_backward(const NormalisationBackward& n, const float* x, const float* dy,
                        float* dx) {
  HWY_DYNAMIC_DISPATCH(normalise_backward)(n, x, dy, dx);
}

}  // namespace troupe::model::cpu

#endif
