#include "pipeline/steps/balance.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "pipeline/steps/micro_batch.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {
namespace {

constexpr double kMeanWeight = 1000.0;
// Keeps micro-batches x speeds within 63 bits for any measured speed.
constexpr double kMostWeight = 1e6;
// Some of many equal members seem slower by three standard errors.
constexpr double kErrorsToGain = 3.0;

double longest(std::span<const std::uint32_t> quotas, const Speeds& speeds) {
  double seconds = 0.0;
  for (std::size_t replica = 0; replica < quotas.size(); ++replica) {
    if (quotas[replica] > 0) seconds = std::max(seconds, quotas[replica] / speeds[replica]);
  }
  return seconds;
}

// How many micro-batches each replica owns.
std::vector<std::uint32_t> counts(std::span<const std::uint32_t> owners, std::size_t replicas) {
  std::vector<std::uint32_t> quotas(replicas, 0);
  for (const std::uint32_t owner : owners) ++quotas.at(owner);
  return quotas;
}

}  // namespace

// Speeds become integer weights with a mean of kMeanWeight, because every member must divide the
// micro-batches alike. An iteration takes as long as its slowest replica, so a new assignment is
// judged by the longest time of a replica under it.
std::optional<Balance> balance(std::span<const std::uint32_t> owners,
                               std::span<const std::uint64_t> weights, const Speeds& speeds,
                               const std::vector<std::uint32_t>& present,
                               const WorthwhileGain& gain, std::uint32_t parts) {
  CHECK(weights.size() == speeds.size(), "one of each replica");
  const std::vector<std::uint32_t> quotas = counts(owners, speeds.size());
  for (std::size_t replica = 0; replica < speeds.size(); ++replica) {
    if (quotas[replica] > 0 && !(speeds[replica] > 0.0)) return std::nullopt;
  }
  double sum = 0.0;
  int measured = 0;
  for (const std::uint32_t replica : present) {
    if (!(speeds[replica] > 0.0)) continue;
    sum += speeds[replica];
    ++measured;
  }
  if (measured == 0 || !std::isfinite(sum)) return std::nullopt;
  const double mean = sum / measured;

  Balance result;
  Speeds assumed(speeds.size(), mean);
  for (const std::uint32_t replica : present) {
    if (speeds[replica] > 0.0) assumed[replica] = speeds[replica];
  }
  for (std::size_t replica = 0; replica < speeds.size(); ++replica) {
    const double weight = std::clamp(kMeanWeight * assumed[replica] / mean, 1.0, kMostWeight);
    result.weights.push_back(weights[replica] == 0 ? 0 : std::llround(weight));
  }
  std::vector<std::uint64_t> those_here(speeds.size(), 0);
  for (const std::uint32_t replica : present) those_here[replica] = result.weights[replica];
  if (std::all_of(those_here.begin(), those_here.end(), [](auto weight) { return weight == 0; })) {
    return std::nullopt;
  }
  result.seconds_now = longest(quotas, assumed);
  const auto count = static_cast<std::uint32_t>(owners.size());
  result.owners = assign_micro_batches(count, those_here, parts, present);
  result.seconds_then = longest(counts(result.owners, speeds.size()), assumed);
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
  told_.at(replica) = {.micro_batches = micro_batches, .seconds = seconds};
  fresh_[replica] = true;
}

void Balancer::forget(std::uint32_t replica) {
  told_.at(replica) = sums_.at(replica) = {};
  fresh_[replica] = false;
}

void Balancer::add_round() {
  for (std::size_t replica = 0; replica < told_.size(); ++replica) {
    const Pace& told = told_[replica];
    Pace& sum = sums_[replica];
    if (told.micro_batches == 0.0) continue;
    const double of_one = told.seconds / told.micro_batches;
    sum.micro_batches += told.micro_batches;
    sum.seconds += told.seconds;
    sum.of_one += of_one;
    sum.of_one_squared += of_one * of_one;
  }
}

double Balancer::error(std::span<const std::uint32_t> owners) const {
  double squares = 0.0, measured = 0.0;
  for (const std::uint32_t replica : std::set(owners.begin(), owners.end())) {
    const Pace& sum = sums_[replica];
    const double mean = sum.of_one / rounds_;
    squares += std::max(0.0, sum.of_one_squared / rounds_ / (mean * mean) - 1.0) / (rounds_ - 1);
    measured += 1.0;
  }
  return std::sqrt(squares / measured);
}

std::optional<Balance> Balancer::judge(std::span<const std::uint32_t> owners,
                                       std::span<const std::uint64_t> weights,
                                       const std::vector<std::uint32_t>& present) {
  if (!std::all_of(owners.begin(), owners.end(), [&](auto owner) { return fresh_.at(owner); })) {
    return std::nullopt;
  }
  fresh_.assign(fresh_.size(), false);
  if (present != present_) {
    present_ = present;
    rounds_ = 0;
    has_shared_ = false;
  }
  WorthwhileGain gain;
  if (has_shared_) gain.share *= 2;
  // A single slow round proves nothing. The first that does not speak for a change starts the count
  // anew, and where the mean does not justify it yet, more rounds are waited for.
  const bool speaks_for_it =
      balance(owners, weights, speeds(told_), present, gain, parts_).has_value();
  if (rounds_ == 0) sums_.assign(told_.size(), {});
  rounds_ = speaks_for_it ? rounds_ + 1 : 0;
  if (rounds_ == 0) return std::nullopt;
  add_round();
  if (rounds_ < kRounds) return std::nullopt;
  gain.share = 1.0 - (1.0 - gain.share) / (1.0 + kErrorsToGain * error(owners));
  auto better = balance(owners, weights, speeds(sums_), present, gain, parts_);
  if (!better) return std::nullopt;
  rounds_ = 0;
  has_shared_ = true;
  return better;
}

}  // namespace troupe::pipeline
