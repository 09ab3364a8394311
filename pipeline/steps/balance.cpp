#include "pipeline/steps/balance.h"

#include <algorithm>
#include <cmath>

#include "pipeline/steps/micro_batch.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

constexpr double kMeanWeight = 1000.0;
// Keeps micro-batches x speeds within 63 bits for any measured speed.
constexpr double kMostWeight = 1e6;

double longest(std::span<const std::uint32_t> quotas, const Speeds& speeds) {
  double seconds = 0.0;
  for (std::size_t replica = 0; replica < quotas.size(); ++replica) {
    if (quotas[replica] > 0) seconds = std::max(seconds, quotas[replica] / speeds[replica]);
  }
  return seconds;
}

}  // namespace

// Speeds become integer weights with a mean of kMeanWeight, because every member must divide the
// micro-batches alike. An iteration takes as long as its slowest replica, so a new assignment is
// judged by the longest time of a replica under it.
std::optional<Balance> balance(std::span<const std::uint32_t> owners,
                               std::span<const std::uint64_t> weights, const Speeds& speeds,
                               const std::vector<bool>& present, const WorthwhileGain& gain) {
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
  const double saved = result.seconds_now - result.seconds_then;
  if (saved < gain.share * result.seconds_now || saved < gain.seconds) return std::nullopt;
  return result;
}

Speeds Balancer::speeds(const std::vector<Pace>& paces) {
  Speeds speeds;
  for (const Pace& pace : paces) speeds.push_back(pace.speed());
  return speeds;
}

void Balancer::measure(std::uint32_t replica, double micro_batches, double seconds) {
  told_.at(replica) = {micro_batches, seconds};
  fresh_[replica] = true;
}

std::optional<Balance> Balancer::judge(std::span<const std::uint32_t> owners,
                                       std::span<const std::uint64_t> weights,
                                       const std::vector<bool>& present) {
  if (!std::all_of(owners.begin(), owners.end(), [&](auto owner) { return fresh_.at(owner); })) {
    return std::nullopt;
  }
  fresh_.assign(fresh_.size(), false);
  if (present != present_) {
    present_ = present;
    epochs_ = 0;
    has_shared_ = false;
  }
  WorthwhileGain gain;
  if (has_shared_) gain.share *= 2;
  // A single slow epoch proves nothing: kEpochs epochs in a row have to speak for a change, and
  // their sums as well. The first epoch that does not speak for it starts the count anew.
  const bool speaks_for_it = balance(owners, weights, speeds(told_), present, gain).has_value();
  if (epochs_ == 0 || !speaks_for_it) sums_.assign(told_.size(), {});
  epochs_ = speaks_for_it ? epochs_ + 1 : 0;
  for (std::size_t replica = 0; replica < told_.size(); ++replica) {
    sums_[replica].micro_batches += told_[replica].micro_batches;
    sums_[replica].seconds += told_[replica].seconds;
  }
  if (epochs_ < kEpochs) return std::nullopt;
  epochs_ = 0;
  auto better = balance(owners, weights, speeds(sums_), present, gain);
  if (better) has_shared_ = true;
  return better;
}

}  // namespace troupe::pipeline
