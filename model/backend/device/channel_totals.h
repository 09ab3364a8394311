#pragma once

// Sums over rows, one for each channel (cpu/channel_sums.h), as kernels of a device make them.

#include <cstdint>

#include "model/backend/cpu/channel_sums.h"
#include "model/backend/device/operation_kernel.h"

namespace troupe::model::device {

inline ChannelSizes sizes_of(const cpu::ChannelSums& sums) {
  as_int((sums.rows + sums.part_rows) * sums.channels);  // where a chain's loop may end
  return {.rows = as_int(sums.rows),
          .channels = as_int(sums.channels),
          .period = as_int(sums.period),
          .parts = as_int(sums.parts),
          .part_rows = as_int(sums.part_rows)};
}

// A kernel that adds chains to totals of channels (item_of_total() of kernels/channel_sums.cl).
class TotalLauncher {
 public:
  TotalLauncher(const Maker& make, const cpu::ChannelSums& sums, std::string_view name,
                std::int64_t samples = 1)
      : launch_(make.kernel(name)) {
    const std::int64_t of_block = BLOCK_ITEMS / (sums.period / sums.channels);
    blocks_ = (samples * sums.channels + of_block - 1) / of_block;
  }
  void operator()(std::int64_t group, const Arguments& arguments) const {
    launch_.blocks(blocks_, Launcher::kItems, group, arguments);
  }

 private:
  Launcher launch_;
  std::int64_t blocks_;
};

// Sums the rows of so many samples to floats: [sample][channel].
class ChannelTotals {
 public:
  ChannelTotals(const Maker& make, std::int64_t rows, std::int64_t channels, std::int64_t samples,
                GroupScratch& scratch)
      : sums_(rows, channels),
        sizes_(sizes_of(sums_)),
        samples_(as_int(samples)),
        chains_(samples * sums_.chains()),
        at_(scratch.add<double>(chains_)),
        sum_(make.kernel("channel_sums")),
        total_(make, sums_, "channel_totals", samples) {}

  // From and to operands of the call.
  void operator()(const GroupCall& call, std::size_t from, std::size_t to) const {
    const auto* sums = reinterpret_cast<const double*>(call.scratch + at_);
    sum_(chains_, call.group.count,
         call.with({from}).operand(sums, chains_).value(sizes_).value(samples_));
    Arguments arguments;
    arguments.operand(sums, chains_);
    total_(call.group.count, call.add(arguments, {to}).value(sizes_).value(samples_));
  }

 private:
  cpu::ChannelSums sums_;
  ChannelSizes sizes_;
  int samples_;
  std::int64_t chains_;
  std::size_t at_;
  Launcher sum_;
  TotalLauncher total_;
};

}  // namespace troupe::model::device
