#include "model/backend/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "model/backend/cpu/channel_sums.h"
#include "model/backend/cpu/channel_vectors.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/cpu/scratch.h"
#include "model/backend/kernel_call.h"
#include "model/backend/reference/kernels.h"

namespace troupe::model::cpu {
namespace {

// Numbers of channels, repeated over a period.
class PeriodPlan {
 public:
  PeriodPlan(std::int64_t rows, std::int64_t channels) : sums_(rows, channels) {}

  const ChannelSums& sums() const { return sums_; }
  std::size_t add_floats() { return plan_.add_floats(sums_.period); }
  std::size_t add_doubles() { return plan_.add_array<double>(sums_.period); }
  std::size_t add_sums() { return plan_.add_array<double>(sums_.chains()); }
  std::size_t bytes() const { return plan_.bytes(); }
  std::int64_t count() const { return sums_.rows * sums_.channels; }
  std::int64_t period() const { return sums_.period; }

  // Floats at `place` where value(channel) stands for every value of the channel.
  template <class Value>
  const float* repeat(std::byte* scratch, std::size_t place, const Value& value) const {
    auto* to = scratch_at<float>(scratch, place);
    for (std::int64_t i = 0; i < sums_.period; ++i) {
      to[i] = i < sums_.channels ? value(i) : to[i - sums_.channels];
    }
    return to;
  }
  double* zeros(std::byte* scratch, std::size_t place) const {
    auto* to = scratch_at<double>(scratch, place);
    std::fill_n(to, sums_.chains(), 0.0);
    return to;
  }

 private:
  ChannelSums sums_;
  ScratchPlan plan_;
};

class TrainingKernel final : public Kernel {
 public:
  explicit TrainingKernel(const BatchNormTraining& norm)
      : norm_(norm), periods_(norm.rows, norm.channels) {
    means_ = periods_.add_doubles();
    sums_ = periods_.add_sums();
    shift_ = periods_.add_floats();
    scale_ = periods_.add_floats();
    plus_ = periods_.add_floats();
  }

  std::size_t scratch_bytes() const override { return periods_.bytes(); }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const auto* x = call.operand<const float>(0);
    const auto* gamma = call.operand<const float>(1);
    const auto* beta = call.operand<const float>(2);
    auto* mean = call.operand<float>(4);
    auto* inverse_deviation = call.operand<float>(5);
    find_statistics(call, x);
    const Normalisation n{
        periods_.count(), periods_.period(),
        periods_.repeat(scratch, shift_, [&](std::int64_t c) { return mean[c]; }),
        periods_.repeat(scratch, scale_,
                        [&](std::int64_t c) { return inverse_deviation[c] * gamma[c]; }),
        periods_.repeat(scratch, plus_, [&](std::int64_t c) { return beta[c]; })};
    normalise(n, x, call.operand<float>(3));
  }

 private:
  // Two passes over the image, as the reference makes them: the mean first, then the squares of the
  // deviations from it. One pass over squares of the values would lose the variance of channels
  // whose mean is large.
  void find_statistics(const KernelCall& call, const float* x) const {
    const double n = static_cast<double>(std::max<std::int64_t>(norm_.rows, 1));
    const ChannelSums& channels = periods_.sums();
    double* sums = periods_.zeros(call.scratch, sums_);
    channels.over_parts([&](std::int64_t first, std::int64_t count, std::int64_t chain) {
      add_values(x + first, count, channels.period, sums + chain);
    });
    auto* means = scratch_at<double>(call.scratch, means_);
    for (std::int64_t i = 0; i < periods_.period(); ++i) {
      means[i] = i < norm_.channels ? channels.total(sums, i) / n : means[i - norm_.channels];
    }
    periods_.zeros(call.scratch, sums_);
    channels.over_parts([&](std::int64_t first, std::int64_t count, std::int64_t chain) {
      add_squares(x + first, count, channels.period, means, sums + chain);
    });
    for (std::int64_t c = 0; c < norm_.channels; ++c) {
      const double squares = channels.total(sums, c);
      call.operand<float>(4)[c] = call.operand<float>(6)[c] = static_cast<float>(means[c]);
      call.operand<float>(5)[c] = static_cast<float>(1.0 / std::sqrt(squares / n + norm_.epsilon));
      call.operand<float>(7)[c] = static_cast<float>(squares / std::max(n - 1.0, 1.0));
    }
  }

  const BatchNormTraining norm_;
  PeriodPlan periods_;
  std::size_t means_ = 0, sums_ = 0, shift_ = 0, scale_ = 0, plus_ = 0;
};

class InferenceKernel final : public Kernel {
 public:
  explicit InferenceKernel(const BatchNormInference& norm)
      : norm_(norm), periods_(norm.rows, norm.channels) {
    shift_ = periods_.add_floats();
    scale_ = periods_.add_floats();
    plus_ = periods_.add_floats();
  }

  std::size_t scratch_bytes() const override { return periods_.bytes(); }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const auto* gamma = call.operand<const float>(1);
    const auto* beta = call.operand<const float>(2);
    const auto* mean = call.operand<const float>(3);
    const auto* variance = call.operand<const float>(4);
    const auto scale = [&](std::int64_t c) {
      const double deviation = std::sqrt(static_cast<double>(variance[c]) + norm_.epsilon);
      return static_cast<float>(1.0 / deviation) * gamma[c];
    };
    const Normalisation n{periods_.count(), periods_.period(),
                          periods_.repeat(scratch, shift_, [&](std::int64_t c) { return mean[c]; }),
                          periods_.repeat(scratch, scale_, scale),
                          periods_.repeat(scratch, plus_, [&](std::int64_t c) { return beta[c]; })};
    normalise(n, call.operand<const float>(0), call.operand<float>(5));
  }

 private:
  const BatchNormInference norm_;
  PeriodPlan periods_;
  std::size_t shift_ = 0, scale_ = 0, plus_ = 0;
};

class BackwardKernel final : public Kernel {
 public:
  explicit BackwardKernel(const BatchNormBackward& norm)
      : norm_(norm), periods_(norm.rows, norm.channels) {
    sums_ = periods_.add_sums();
    products_ = periods_.add_sums();
    for (std::size_t* place : {&shift_, &scale_, &factor_, &mean_, &slope_}) {
      *place = periods_.add_floats();
    }
  }

  std::size_t scratch_bytes() const override { return periods_.bytes(); }

  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const auto* x = call.operand<const float>(0);
    const auto* dy = call.operand<const float>(1);
    const auto* gamma = call.operand<const float>(2);
    const auto* mean = call.operand<const float>(3);
    const auto* inverse_deviation = call.operand<const float>(4);
    const Normalisation n{
        periods_.count(), periods_.period(),
        periods_.repeat(scratch, shift_, [&](std::int64_t c) { return mean[c]; }),
        periods_.repeat(scratch, scale_, [&](std::int64_t c) { return inverse_deviation[c]; }),
        nullptr};
    // The first pass forms the sums of dy and of dy times the normalised x, the second one applies
    // their means (backend/reference/batch_norm.cpp has the formula).
    const ChannelSums& channels = periods_.sums();
    double* sums = periods_.zeros(scratch, sums_);
    double* products = periods_.zeros(scratch, products_);
    channels.over_parts([&](std::int64_t first, std::int64_t count, std::int64_t chain) {
      Normalisation part = n;
      part.count = count;
      add_products(part, x + first, dy + first, sums + chain, products + chain);
    });
    auto* dgamma = call.operand<float>(6);
    auto* dbeta = call.operand<float>(7);
    for (std::int64_t c = 0; c < norm_.channels; ++c) {
      // No other channel reads places of this one.
      sums[c] = channels.total(sums, c);
      products[c] = channels.total(products, c);
      if (dgamma) dgamma[c] = static_cast<float>(products[c]);
      if (dbeta) dbeta[c] = static_cast<float>(sums[c]);
    }
    const double rows = static_cast<double>(std::max<std::int64_t>(norm_.rows, 1));
    const auto mean_of = [rows](const double* totals) {
      return [totals, rows](std::int64_t c) { return static_cast<float>(totals[c] / rows); };
    };
    normalise_backward(
        {n,
         periods_.repeat(scratch, factor_,
                         [&](std::int64_t c) { return gamma[c] * inverse_deviation[c]; }),
         periods_.repeat(scratch, mean_, mean_of(sums)),
         periods_.repeat(scratch, slope_, mean_of(products))},
        x, dy, call.operand<float>(5));
  }

 private:
  const BatchNormBackward norm_;
  PeriodPlan periods_;
  std::size_t sums_ = 0, products_ = 0, shift_ = 0, scale_ = 0, factor_ = 0, mean_ = 0, slope_ = 0;
};

// Hosts without the vectors' instructions use the reference.
template <class Ours, class Norm>
std::unique_ptr<Kernel> choose(const Norm& norm) {
  if (plane_vectors_supported()) return std::make_unique<Ours>(norm);
  return reference::make_kernel<float>(norm);
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const BatchNormTraining& norm) {
  return choose<TrainingKernel>(norm);
}

std::unique_ptr<Kernel> make_kernel(const BatchNormInference& norm) {
  return choose<InferenceKernel>(norm);
}

std::unique_ptr<Kernel> make_kernel(const BatchNormBackward& norm) {
  return choose<BackwardKernel>(norm);
}

}  // namespace troupe::model::cpu
