#include "bench/fma_peak.h"

#include <algorithm>

#include "bench/measure.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/fma_peak.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace troupe::bench::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// More chains than a core can have under way.
constexpr int kChains = 12;
constexpr int kRounds = 2'000'000;

// The multiply-adds done; their result goes to `sink`, so that they are.
double multiply_and_add(float* sink) {
  const hn::ScalableTag<float> tag;
  hn::Vec<decltype(tag)> sums[kChains];
  for (auto& sum : sums) sum = hn::Set(tag, *sink);
  const auto factor = hn::Set(tag, 0.999f), plus = hn::Set(tag, 0.001f);
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = hn::MulAdd(sum, factor, plus);
  }
  for (const auto& sum : sums) *sink += hn::GetLane(sum);
  return static_cast<double>(hn::Lanes(tag)) * kChains * kRounds;
}

}  // namespace troupe::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::bench {

HWY_EXPORT(multiply_and_add);

double fma_peak() {
  double best = 0.0;
  float sink = 0.5f;
  for (int i = 0; i < 7; ++i) {
    const double start = thread_seconds();
    const double products = HWY_DYNAMIC_DISPATCH(multiply_and_add)(&sink);
    best = std::max(best, products / (thread_seconds() - start));
  }
  return best;
}

}  // namespace troupe::bench

#endif
