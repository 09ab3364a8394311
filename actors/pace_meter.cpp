#include "actors/pace_meter.h"

#include <utility>

namespace troupe::actors {
namespace {

// So that no single iteration decides in which a cache was cold or the system was busy.
constexpr std::uint64_t kFewestIterations = 8;

}  // namespace

void PaceMeter::restart() {
  is_whole_ = false;
  iterations_ = micro_batches_ = 0;
  measured_seconds_ = 0.0;
}

void PaceMeter::end_iteration(std::uint64_t micro_batches) {
  const double seconds = std::exchange(seconds_, 0.0);
  if (!std::exchange(is_whole_, true)) return;
  ++iterations_;
  micro_batches_ += micro_batches;
  measured_seconds_ += seconds;
}

std::optional<Pace> PaceMeter::take(std::uint32_t replica, std::uint64_t iteration) {
  if (iterations_ < kFewestIterations || micro_batches_ == 0) return std::nullopt;
  iterations_ = 0;
  return Pace{replica, iteration, std::exchange(micro_batches_, 0),
              std::exchange(measured_seconds_, 0.0)};
}

}  // namespace troupe::actors
