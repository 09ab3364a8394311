#include "model/backend/cpu/channel_sums.h"

#include <cmath>

#include "model/backend/cpu/channel_vectors.h"
#include "model/backend/cpu/plane_vectors.h"
#include "model/backend/kernel_call.h"
#include "model/backend/reference/kernels.h"

namespace troupe::model::cpu {
namespace {

class SumKernel final : public Kernel {
 public:
  explicit SumKernel(const SumRows& sum) : sum_(sum), rows_(sum.rows, sum.channels) {}

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(rows_.chains()) * sizeof(double);
  }
  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override {
    const KernelCall call{operands, random, scratch};
    const auto* x = call.operand<const float>(0);
    auto* y = call.operand<float>(1);
    for (std::int64_t n = 0; n < sum_.batch; ++n) {
      sum_channels(rows_, x + n * sum_.rows * sum_.channels, reinterpret_cast<double*>(scratch),
                   y + n * sum_.channels);
    }
  }

 private:
  const SumRows sum_;
  const ChannelSums rows_;
};

}  // namespace

// A part is about as long as a channel has parts of chains.
ChannelSums::ChannelSums(std::int64_t rows, std::int64_t channels)
    : rows(rows), channels(channels), period(channel_period(channels, rows * channels)) {
  constexpr std::int64_t kLeastLength = 64;
  const std::int64_t rows_at_once = period / channels;
  const std::int64_t length = (rows + rows_at_once - 1) / rows_at_once;
  const auto even = static_cast<std::int64_t>(
      std::sqrt(static_cast<double>(length) * static_cast<double>(rows_at_once)));
  const std::int64_t part_length = std::max(even, kLeastLength);
  parts = std::max<std::int64_t>((length + part_length - 1) / part_length, 1);
  part_rows = part_length * rows_at_once;
}

void sum_channels(const ChannelSums& channels, const float* values, double* sums, float* to) {
  std::fill_n(sums, channels.chains(), 0.0);
  channels.over_parts([&](std::int64_t first, std::int64_t count, std::int64_t chain) {
    add_values(values + first, count, channels.period, sums + chain);
  });
  for (std::int64_t c = 0; c < channels.channels; ++c) {
    to[c] = static_cast<float>(channels.total(sums, c));
  }
}

std::unique_ptr<Kernel> make_kernel(const SumRows& sum) {
  if (!plane_vectors_supported()) return reference::make_kernel<float>(sum);
  return std::make_unique<SumKernel>(sum);
}

}  // namespace troupe::model::cpu
