#include "pipeline/balance.h"

#include <algorithm>
#include <cmath>

#include "pipeline/micro_batch.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

constexpr double kMeanWeight = 1000.0;
// Keeps micro-batches x speeds within 63 bits, whatever was measured.
constexpr double kMostWeight = 1e6;

double longest(std::span<const std::uint32_t> quotas, const Speeds& speeds) {
  double seconds = 0.0;
  for (std::size_t replica = 0; replica < quotas.size(); ++replica) {
    if (quotas[replica] > 0) seconds = std::max(seconds, quotas[replica] / speeds[replica]);
  }
  return seconds;
}

}  // namespace

std::optional<Balance> balance(std::span<const std::uint32_t> owners,
                               std::span<const std::uint64_t> weights, const Speeds& speeds,
                               const std::vector<bool>& present) {
  CHECK(weights.size() == speeds.size() && present.size() == speeds.size(), "one of each replica");
  std::vector<std::uint32_t> quotas(speeds.size(), 0);
  for (const std::uint32_t owner : owners) ++quotas.at(owner);
  double sum = 0.0;
  int measured = 0;
  for (std::size_t replica = 0; replica < speeds.size(); ++replica) {
    const double speed = speeds[replica];
    if (quotas[replica] > 0 && !(speed > 0.0)) return std::nullopt;
    if (!present[replica] || !(speed > 0.0)) continue;
    sum += speed;
    ++measured;
  }
  if (measured == 0 || !std::isfinite(sum)) return std::nullopt;
  const double mean = sum / measured;

  Balance result;
  Speeds assumed = speeds;
  std::vector<std::uint64_t> those_here(speeds.size(), 0);
  for (std::size_t replica = 0; replica < speeds.size(); ++replica) {
    if (!present[replica] || !(assumed[replica] > 0.0)) assumed[replica] = mean;
    const double weight = std::clamp(kMeanWeight * assumed[replica] / mean, 1.0, kMostWeight);
    result.weights.push_back(weights[replica] == 0 ? 0 : std::llround(weight));
    if (present[replica]) those_here[replica] = result.weights.back();
  }
  if (std::all_of(those_here.begin(), those_here.end(), [](auto weight) { return weight == 0; })) {
    return std::nullopt;
  }
  result.seconds_now = longest(quotas, assumed);
  const auto count = static_cast<std::uint32_t>(owners.size());
  result.owners = assign_micro_batches(count, those_here);
  result.seconds_then = longest(micro_batch_quotas(count, those_here), assumed);
  if (result.seconds_then > (1.0 - kWorthwhileGain) * result.seconds_now) return std::nullopt;
  return result;
}

}  // namespace troupe::pipeline
