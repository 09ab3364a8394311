#include "model/backend/cpu/group_norm.h"

#include <algorithm>
#include <cmath>

#include "model/backend/cpu/layer_norm.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/scratch.h"
#include "model/backend/kernel_call.h"
#include "model/backend/reference/kernels.h"

// This file is compiled once for each kind of vector, as plane_vectors.cpp is.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/backend/cpu/group_norm.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#ifndef TROUPE_NORM_ROWS
#define TROUPE_NORM_ROWS
namespace troupe::model::cpu {

// Rows of channels of one sample.
struct NormRows {
  std::int64_t rows = 0, channels = 0;
  const float *x = nullptr, *dy = nullptr;
};
// What normalises them, per channel.
struct NormChannels {
  const float *mean = nullptr, *scale = nullptr, *beta = nullptr;
};
// What the derivatives need besides, per channel: means of d and of d x^ in the reference's
// formula.
struct NormSlopes {
  const float *gamma = nullptr, *sum = nullptr, *product = nullptr;
};

}  // namespace troupe::model::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace troupe::model::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::CappedTag<float, 16>;
using Doubles = hn::CappedTag<double, 8>;
using HalfFloats = hn::Rebind<float, Doubles>;
constexpr std::int64_t kLanes = hn::MaxLanes(Floats());
constexpr std::int64_t kDoubles = hn::MaxLanes(Doubles());

// Calls vectors(c) for whole vectors of `lanes` channels from c on, then single(c) for the rest.
template <class Vectors, class Single>
HWY_INLINE void over_channels(std::int64_t channels, std::int64_t lanes, const Vectors& vectors,
                              const Single& single) {
  std::int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) vectors(c);
  for (; c < channels; ++c) single(c);
}

HWY_INLINE hn::Vec<Doubles> load_doubles(const float* from) {
  return hn::PromoteTo(Doubles(), hn::LoadU(HalfFloats(), from));
}

void add_up(const NormRows& n, double* sums) {
  over_channels(
      n.channels, kDoubles,
      [&](std::int64_t c) {
        auto sum = hn::Zero(Doubles());
        for (std::int64_t r = 0; r < n.rows; ++r) {
          sum = hn::Add(sum, load_doubles(n.x + r * n.channels + c));
        }
        hn::StoreU(sum, Doubles(), sums + c);
      },
      [&](std::int64_t c) {
        sums[c] = 0.0;
        for (std::int64_t r = 0; r < n.rows; ++r) {
          sums[c] += static_cast<double>(n.x[r * n.channels + c]);
        }
      });
}

void add_squares(const NormRows& n, const double* means, double* sums) {
  over_channels(
      n.channels, kDoubles,
      [&](std::int64_t c) {
        const auto mean = hn::LoadU(Doubles(), means + c);
        auto sum = hn::Zero(Doubles());
        for (std::int64_t r = 0; r < n.rows; ++r) {
          const auto deviation = hn::Sub(load_doubles(n.x + r * n.channels + c), mean);
          sum = hn::Add(sum, hn::Mul(deviation, deviation));
        }
        hn::StoreU(sum, Doubles(), sums + c);
      },
      [&](std::int64_t c) {
        sums[c] = 0.0;
        for (std::int64_t r = 0; r < n.rows; ++r) {
          const double deviation = static_cast<double>(n.x[r * n.channels + c]) - means[c];
          sums[c] += deviation * deviation;
        }
      });
}

void normalise_rows(const NormRows& n, const NormChannels& by, float* y) {
  const Floats tag;
  for (std::int64_t r = 0; r < n.rows; ++r) {
    const float* x = n.x + r * n.channels;
    float* to = y + r * n.channels;
    over_channels(
        n.channels, kLanes,
        [&](std::int64_t c) {
          const auto centred = hn::Sub(hn::LoadU(tag, x + c), hn::LoadU(tag, by.mean + c));
          const auto scaled = hn::Mul(centred, hn::LoadU(tag, by.scale + c));
          hn::StoreU(hn::Add(scaled, hn::LoadU(tag, by.beta + c)), tag, to + c);
        },
        [&](std::int64_t c) { to[c] = (x[c] - by.mean[c]) * by.scale[c] + by.beta[c]; });
  }
}

// Sums of dy and of dy x^.
void add_derivatives(const NormRows& n, const NormChannels& by, double* sums, double* products) {
  over_channels(
      n.channels, kDoubles,
      [&](std::int64_t c) {
        const HalfFloats half;
        const auto mean = hn::LoadU(half, by.mean + c), scale = hn::LoadU(half, by.scale + c);
        auto sum = hn::Zero(Doubles()), product = sum;
        for (std::int64_t r = 0; r < n.rows; ++r) {
          const std::int64_t i = r * n.channels + c;
          const auto derivative = load_doubles(n.dy + i);
          const auto normalised = hn::Mul(hn::Sub(hn::LoadU(half, n.x + i), mean), scale);
          sum = hn::Add(sum, derivative);
          product = hn::Add(product, hn::Mul(derivative, hn::PromoteTo(Doubles(), normalised)));
        }
        hn::StoreU(sum, Doubles(), sums + c);
        hn::StoreU(product, Doubles(), products + c);
      },
      [&](std::int64_t c) {
        sums[c] = products[c] = 0.0;
        for (std::int64_t r = 0; r < n.rows; ++r) {
          const std::int64_t i = r * n.channels + c;
          const float normalised = (n.x[i] - by.mean[c]) * by.scale[c];
          sums[c] += static_cast<double>(n.dy[i]);
          products[c] += static_cast<double>(n.dy[i]) * static_cast<double>(normalised);
        }
      });
}

void derive_rows(const NormRows& n, const NormChannels& by, const NormSlopes& slopes, float* dx) {
  const Floats tag;
  for (std::int64_t r = 0; r < n.rows; ++r) {
    const float *x = n.x + r * n.channels, *dy = n.dy + r * n.channels;
    float* to = dx + r * n.channels;
    over_channels(
        n.channels, kLanes,
        [&](std::int64_t c) {
          const auto at = [&](const float* values) { return hn::LoadU(tag, values + c); };
          const auto normalised = hn::Mul(hn::Sub(at(x), at(by.mean)), at(by.scale));
          const auto centred = hn::Sub(hn::Sub(hn::Mul(at(slopes.gamma), at(dy)), at(slopes.sum)),
                                       hn::Mul(normalised, at(slopes.product)));
          hn::StoreU(hn::Mul(at(by.scale), centred), tag, to + c);
        },
        [&](std::int64_t c) {
          const float normalised = (x[c] - by.mean[c]) * by.scale[c];
          const float centred =
              slopes.gamma[c] * dy[c] - slopes.sum[c] - normalised * slopes.product[c];
          to[c] = by.scale[c] * centred;
        });
  }
}

}  // namespace troupe::model::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::model::cpu {

HWY_EXPORT(add_up);
HWY_EXPORT(add_squares);
HWY_EXPORT(normalise_rows);
HWY_EXPORT(add_derivatives);
HWY_EXPORT(derive_rows);

namespace {

class ForwardKernel final : public Kernel {
 public:
  explicit ForwardKernel(const GroupNormForward& norm) : norm_(norm) {
    sums_ = plan_.add_array<double>(norm.channels);
    means_ = plan_.add_array<double>(norm.channels);
    mean_ = plan_.add_floats(norm.channels);
    scale_ = plan_.add_floats(norm.channels);
  }

  std::size_t scratch_bytes() const override { return plan_.bytes(); }
  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    run_together(operands, random, Crew(scratch));
  }
  void run_together(std::span<void* const> operands, const runtime::RandomPosition& random,
                    const Crew& crew) const override {
    // About as many operations for each element as for a multiply-add.
    const auto work = static_cast<double>(norm_.samples * norm_.rows * norm_.channels);
    crew.for_work(work, 1).run(norm_.samples, [&](std::int64_t sample, int thread) {
      normalise(KernelCall{operands, random, crew.scratch(thread)}, sample);
    });
  }

 private:
  void normalise(const KernelCall& call, std::int64_t sample) const {
    const std::int64_t channels = norm_.channels, of_group = channels / norm_.groups;
    const std::int64_t size = norm_.rows * channels;
    const NormRows rows{norm_.rows, channels, call.operand<const float>(0) + sample * size};
    const auto* gamma = call.operand<const float>(1);
    auto* mean = call.operand<float>(4) + sample * norm_.groups;
    auto* inverse_deviation = call.operand<float>(5) + sample * norm_.groups;
    auto* sums = scratch_at<double>(call.scratch, sums_);
    auto* means = scratch_at<double>(call.scratch, means_);
    const double count = static_cast<double>(norm_.rows * of_group);
    const auto total = [&](std::int64_t group) {
      double total = 0.0;
      for (std::int64_t c = 0; c < of_group; ++c) total += sums[group * of_group + c];
      return total;
    };
    HWY_DYNAMIC_DISPATCH(add_up)(rows, sums);
    for (std::int64_t group = 0; group < norm_.groups; ++group) {
      std::fill_n(means + group * of_group, of_group, total(group) / count);
    }
    HWY_DYNAMIC_DISPATCH(add_squares)(rows, means, sums);
    auto* of_channels = scratch_at<float>(call.scratch, mean_);
    auto* scale = scratch_at<float>(call.scratch, scale_);
    for (std::int64_t group = 0; group < norm_.groups; ++group) {
      mean[group] = static_cast<float>(means[group * of_group]);
      inverse_deviation[group] =
          static_cast<float>(1.0 / std::sqrt(total(group) / count + norm_.epsilon));
      for (std::int64_t c = group * of_group; c < (group + 1) * of_group; ++c) {
        of_channels[c] = mean[group];
        scale[c] = inverse_deviation[group] * gamma[c];
      }
    }
    HWY_DYNAMIC_DISPATCH(normalise_rows)
    (rows, {of_channels, scale, call.operand<const float>(2)},
     call.operand<float>(3) + sample * size);
  }

  const GroupNormForward norm_;
  ScratchPlan plan_;
  std::size_t sums_ = 0, means_ = 0, mean_ = 0, scale_ = 0;
};

class BackwardKernel final : public Kernel {
 public:
  explicit BackwardKernel(const GroupNormBackward& norm) : norm_(norm) {
    for (std::size_t* place : {&sums_, &products_, &all_sums_, &all_products_}) {
      *place = plan_.add_array<double>(norm.channels);
    }
    for (std::size_t* place : {&mean_, &scale_, &sum_, &product_}) {
      *place = plan_.add_floats(norm.channels);
    }
  }

  std::size_t scratch_bytes() const override { return plan_.bytes(); }
  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    auto* all_sums = scratch_at<double>(scratch, all_sums_);
    auto* all_products = scratch_at<double>(scratch, all_products_);
    std::fill_n(all_sums, norm_.channels, 0.0);
    std::fill_n(all_products, norm_.channels, 0.0);
    for (std::int64_t sample = 0; sample < norm_.samples; ++sample) derive(call, sample);
    auto* dgamma = call.operand<float>(6);
    auto* dbeta = call.operand<float>(7);
    for (std::int64_t c = 0; c < norm_.channels; ++c) {
      if (dgamma) dgamma[c] = static_cast<float>(all_products[c]);
      if (dbeta) dbeta[c] = static_cast<float>(all_sums[c]);
    }
  }

 private:
  void derive(const KernelCall& call, std::int64_t sample) const {
    const std::int64_t channels = norm_.channels, of_group = channels / norm_.groups;
    const std::int64_t size = norm_.rows * channels;
    const NormRows rows{norm_.rows, channels, call.operand<const float>(0) + sample * size,
                        call.operand<const float>(1) + sample * size};
    const auto* gamma = call.operand<const float>(2);
    const auto floats = [&](std::size_t place) { return scratch_at<float>(call.scratch, place); };
    const auto doubles = [&](std::size_t place) { return scratch_at<double>(call.scratch, place); };
    float *mean = floats(mean_), *scale = floats(scale_);
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t group = sample * norm_.groups + c / of_group;
      mean[c] = call.operand<const float>(3)[group];
      scale[c] = call.operand<const float>(4)[group];
    }
    double *sums = doubles(sums_), *products = doubles(products_);
    HWY_DYNAMIC_DISPATCH(add_derivatives)(rows, {mean, scale, nullptr}, sums, products);
    for (std::int64_t c = 0; c < channels; ++c) {
      doubles(all_sums_)[c] += sums[c];
      doubles(all_products_)[c] += products[c];
    }
    const double count = static_cast<double>(norm_.rows * of_group);
    for (std::int64_t first = 0; first < channels; first += of_group) {
      double sum = 0.0, product = 0.0;
      for (std::int64_t c = first; c < first + of_group; ++c) {
        sum += static_cast<double>(gamma[c]) * sums[c];
        product += static_cast<double>(gamma[c]) * products[c];
      }
      std::fill_n(floats(sum_) + first, of_group, static_cast<float>(sum / count));
      std::fill_n(floats(product_) + first, of_group, static_cast<float>(product / count));
    }
    HWY_DYNAMIC_DISPATCH(derive_rows)
    (rows, {mean, scale, nullptr}, {gamma, floats(sum_), floats(product_)},
     call.operand<float>(5) + sample * size);
  }

  const GroupNormBackward norm_;
  ScratchPlan plan_;
  std::size_t sums_ = 0, products_ = 0, all_sums_ = 0, all_products_ = 0;
  std::size_t mean_ = 0, scale_ = 0, sum_ = 0, product_ = 0;
};

// Hosts without the vectors' instructions use the reference.
template <class Ours, class Norm>
std::unique_ptr<Kernel> choose(const Norm& norm) {
  if (!plane_vectors_supported()) return reference::make_kernel<float>(norm);
  if (is_of_cells(norm)) return make_cell_kernel(norm);
  return std::make_unique<Ours>(norm);
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const GroupNormForward& norm) {
  return choose<ForwardKernel>(norm);
}

std::unique_ptr<Kernel> make_kernel(const GroupNormBackward& norm) {
  return choose<BackwardKernel>(norm);
}

}  // namespace troupe::model::cpu

#endif
