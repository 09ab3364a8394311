#include "telemetry/epoch_count.h"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::telemetry {

EpochCount count_epochs(std::uint64_t done, std::uint64_t all, std::uint64_t per_epoch) {
  EpochCount count;
  if (per_epoch == 0) return count;
  count.epoch = done / per_epoch + 1;
  if (all == 0) return count;
  count.all = (all - 1) / per_epoch + 1;
  count.epoch = std::min(count.epoch, count.all);
  return count;
}

std::string epoch_text(const EpochCount& count) {
  return count.all == 0 ? fmt::format("epoch {}", count.epoch)
                        : fmt::format("epoch {}/{}", count.epoch, count.all);
}

}  // namespace troupe::telemetry
