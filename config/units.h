#pragma once

// Quantities with a unit, as they are written in topology files.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"

namespace troupe::config {

// "500ms", "2s", "10min", "1h", "250us", "10ns"; whole numbers only, up to 1000 days. Nothing
// for anything else.
std::optional<runtime::Duration> parse_duration(std::string_view text);
// In the largest unit that divides it: parse_duration of the result gives it back.
std::string print_duration(runtime::Duration duration);

// "64KiB", "1MiB", "4GiB", "512B" or plain bytes "4096"; whole numbers only, up to 1024 GiB.
std::optional<std::int64_t> parse_bytes(std::string_view text);
std::string print_bytes(std::int64_t bytes);

// "100Mbit", "10Gbit", "56kbit", "300bit", a decimal unit each: bits per second. Whole numbers
// only, up to 1,000,000 Gbit.
std::optional<std::int64_t> parse_rate(std::string_view text);
std::string print_rate(std::int64_t bits_per_second);

// How often something happens during training.
struct Every {
  enum class Unit : std::uint8_t { kNever, kEpochs, kIterations };
  Unit unit = Unit::kEpochs;
  std::uint64_t count = 1;  // 0 when never

  bool operator==(const Every&) const = default;
  // Whether it is due after an iteration: `iteration` and `epoch` are how many of each are
  // finished, and `epoch_ended` says that the iteration was the last of its epoch.
  bool due(std::uint64_t iteration, std::uint64_t epoch, bool epoch_ended) const;
};

// "1 epoch", "3 epochs", "50 iterations" or "none".
std::optional<Every> parse_every(std::string_view text);
std::string print_every(const Every& every);

}  // namespace troupe::config
