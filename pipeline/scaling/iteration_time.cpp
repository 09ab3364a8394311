#include "pipeline/scaling/iteration_time.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "pipeline/steps/micro_batch.h"

namespace troupe::pipeline {
namespace {

constexpr double kMostCrewWeight = 1e6;  // of the worker that gets most
constexpr double kLeastBucket = 4096;

// The quantile of the normal distribution above its middle, within 4.5e-4 (Abramowitz and Stegun,
// 26.2.23).
double upper_quantile(double probability) {
  const double t = std::sqrt(-2.0 * std::log(1.0 - probability));
  return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                 (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

// By how many deviations the slowest of so many is expected to be slower than one (Blom).
double slowest_of(double members) {
  return members < 2.0 ? 0.0 : upper_quantile((members - 0.375) / (members + 0.25));
}

double ring_seconds(double bytes, double members, double bucket_bytes, const RingLine& line,
                    bool may_have_rows) {
  const double bucket = std::max(kLeastBucket, std::min(bucket_bytes, bytes / members));
  const double rate = std::min(line.bytes_per_second, line.member_bytes_per_second);
  // As pipeline/steps/ring_rows.h has it, for members of which nothing else is known.
  const auto seconds = [&](double rows) {
    const double longest = std::ceil(members / rows);
    const auto turn = [&](double part) {
      return std::max(part / rate, line.message_seconds + bucket / rate);
    };
    return 2.0 * (longest - 1.0) * turn(bytes / longest) +
           2.0 * (rows - 1.0) * turn(bytes / longest / rows);
  };
  const double rows = std::round(std::sqrt(members));
  const double least = RingCosts{}.least;
  const bool has_rows = may_have_rows && rows >= least && members >= rows * least;
  return has_rows ? std::min(seconds(1.0), seconds(rows)) : seconds(1.0);
}

// Weights and speeds of all workers, crew by crew.
struct Workers {
  std::vector<std::uint64_t> weights;
  std::vector<double> speeds;
};

Workers workers_of(const IterationWork& work, std::span<const Crew> crews) {
  const auto share_of = [](const Crew& crew) { return crew.share > 0.0 ? crew.share : crew.speed; };
  double most = 0.0;
  for (const Crew& crew : crews) most = std::max(most, share_of(crew));
  Workers workers;
  for (const Crew& crew : crews) {
    const bool works = crew.speed > 0.0;
    const double weight = work.by_speed ? kMostCrewWeight * share_of(crew) / most : 1.0;
    const auto whole = works ? std::max(std::uint64_t{1}, std::uint64_t(std::llround(weight))) : 0;
    workers.weights.insert(workers.weights.end(), crew.workers, whole);
    workers.speeds.insert(workers.speeds.end(), crew.workers, crew.speed);
  }
  return workers;
}

double computing_seconds(std::span<const std::uint32_t> owners, std::span<const double> speeds) {
  std::vector<std::uint32_t> quotas(speeds.size(), 0);
  for (const std::uint32_t owner : owners) ++quotas[owner];
  double seconds = 0.0;
  for (std::size_t i = 0; i < quotas.size(); ++i) {
    if (quotas[i] > 0) seconds = std::max(seconds, quotas[i] / speeds[i]);
  }
  return seconds;
}

// Takes the site with most members.
double site_seconds(const IterationWork& work, const RingLine& line,
                    std::span<const std::uint32_t> owners) {
  std::size_t most = 1;
  for (std::size_t first = 0; first < owners.size(); first += work.parts) {
    std::set<std::uint32_t> members;
    for (const std::uint32_t owner : owners.subspan(first, work.parts)) {
      members.insert(owner / work.workers_per_member);
    }
    most = std::max(most, members.size());
  }
  double seconds = 0.0;
  for (const double bytes : work.site_step_bytes) {
    seconds += ring_seconds(bytes, static_cast<double>(most), work.bucket_bytes, line, false);
  }
  return work.site_iterations * seconds;
}

}  // namespace

IterationTime iteration_time(const IterationWork& work, const RingLine& line,
                             std::span<const Crew> crews) {
  double members = 0.0;
  for (const Crew& crew : crews) members += crew.speed > 0.0 ? crew.workers : 0;
  members = std::ceil(members / work.workers_per_member);
  IterationTime time;
  const Workers workers = workers_of(work, crews);
  if (std::ranges::none_of(workers.weights, [](auto weight) { return weight > 0; })) {
    time.computing = std::numeric_limits<double>::infinity();
    return time;
  }
  const auto owners = assign_micro_batches(work.micro_batches, workers.weights, work.parts);
  time.computing = computing_seconds(owners, workers.speeds);
  if (members < 2.0) return time;
  time.waiting = time.computing * line.deviation * slowest_of(members);
  for (const double bytes : work.step_bytes) {
    time.summing += ring_seconds(bytes, members, work.bucket_bytes, line, true);
  }
  if (work.parts > 1) time.summing += site_seconds(work, line, owners);
  return time;
}

}  // namespace troupe::pipeline
