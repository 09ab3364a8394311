#include "model/backend/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>

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
  PeriodPlan(std::int64_t rows, std::int64_t channels)
      : rows_(rows), channels_(channels), period_(channel_period(channels, rows * channels)) {}

  std::size_t add_floats() { return plan_.add_floats(period_); }
  std::size_t add_doubles() {
    return plan_.add_bytes(static_cast<std::size_t>(period_) * sizeof(double));
  }
  std::size_t bytes() const { return plan_.bytes(); }
  std::int64_t count() const { return rows_ * channels_; }
  std::int64_t period() const { return period_; }

  // Floats at `place` where value(channel) stands for every value of the channel.
  template <class Value>
  const float* repeat(std::byte* scratch, std::size_t place, const Value& value) const {
    auto* to = scratch_at<float>(scratch, place);
    for (std::int64_t i = 0; i < period_; ++i) to[i] = value(i % channels_);
    return to;
  }
  double* zeros(std::byte* scratch, std::size_t place) const {
    auto* to = scratch_at<double>(scratch, place);
    std::fill_n(to, period_, 0.0);
    return to;
  }
  // The sum of the channel's numbers in `sums`.
  double total(const double* sums, std::int64_t channel) const {
    double total = 0.0;
    for (std::int64_t i = channel; i < period_; i += channels_) total += sums[i];
    return total;
  }

 private:
  std::int64_t rows_, channels_, period_;
  ScratchPlan plan_;
};

class TrainingKernel final : public Kernel {
 public:
  explicit TrainingKernel(const BatchNormTraining& norm)
      : norm_(norm), periods_(norm.rows, norm.channels) {
    means_ = periods_.add_doubles();
    sums_ = periods_.add_doubles();
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
    double* sums = periods_.zeros(call.scratch, sums_);
    add_values(x, periods_.count(), periods_.period(), sums);
    auto* means = scratch_at<double>(call.scratch, means_);
    for (std::int64_t i = 0; i < periods_.period(); ++i) {
      means[i] = i < norm_.channels ? periods_.total(sums, i) / n : means[i - norm_.channels];
    }
    periods_.zeros(call.scratch, sums_);
    add_squares(x, periods_.count(), periods_.period(), means, sums);
    for (std::int64_t c = 0; c < norm_.channels; ++c) {
      const double squares = periods_.total(sums, c);
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
    sums_ = periods_.add_doubles();
    products_ = periods_.add_doubles();
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
    double* sums = periods_.zeros(scratch, sums_);
    double* products = periods_.zeros(scratch, products_);
    add_products(n, x, dy, sums, products);
    auto* dgamma = call.operand<float>(6);
    auto* dbeta = call.operand<float>(7);
    for (std::int64_t c = 0; c < norm_.channels; ++c) {
      if (dgamma) dgamma[c] = static_cast<float>(periods_.total(products, c));
      if (dbeta) dbeta[c] = static_cast<float>(periods_.total(sums, c));
    }
    const double rows = static_cast<double>(std::max<std::int64_t>(norm_.rows, 1));
    const auto mean_of = [&](const double* numbers) {
      return [this, numbers, rows](std::int64_t c) {
        return static_cast<float>(periods_.total(numbers, c) / rows);
      };
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
