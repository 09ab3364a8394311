#include "config/units.h"

#include <fmt/format.h>

#include <charconv>
#include <span>

namespace troupe::config {
namespace {

struct Unit {
  std::string_view word;
  std::int64_t size;
};

constexpr Unit kDurationUnits[] = {
    // largest first
    {"h", 3'600'000'000'000}, {"min", 60'000'000'000}, {"s", 1'000'000'000},
    {"ms", 1'000'000},        {"us", 1'000},           {"ns", 1},
};
constexpr Unit kByteUnits[] = {
    {"GiB", std::int64_t{1} << 30},
    {"MiB", std::int64_t{1} << 20},
    {"KiB", std::int64_t{1} << 10},
    {"B", 1},
};
constexpr Unit kRateUnits[] = {
    {"Gbit", 1'000'000'000},
    {"Mbit", 1'000'000},
    {"kbit", 1'000},
    {"bit", 1},
};
constexpr std::int64_t kLongestDuration = 1000 * 24 * std::int64_t{3'600'000'000'000};
constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;
constexpr std::int64_t kHighestRate = 1'000'000 * std::int64_t{1'000'000'000};

// Takes the digits text begins with.
std::optional<std::uint64_t> take_count(std::string_view& text) {
  std::uint64_t count = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  while (text.starts_with(' ')) text.remove_prefix(1);
  return count;
}

std::optional<std::int64_t> parse_quantity(std::string_view text, std::span<const Unit> units,
                                           std::int64_t most) {
  const std::optional<std::uint64_t> count = take_count(text);
  if (!count) return std::nullopt;
  for (const Unit& unit : units) {
    if (text != unit.word) continue;
    if (*count > static_cast<std::uint64_t>(most / unit.size)) return std::nullopt;
    return static_cast<std::int64_t>(*count) * unit.size;
  }
  return std::nullopt;
}

std::string print_quantity(std::int64_t quantity, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (quantity != 0 && quantity % unit.size == 0) {
      return fmt::format("{}{}", quantity / unit.size, unit.word);
    }
  }
  return fmt::format("{}{}", quantity, units.back().word);
}

}  // namespace

std::optional<runtime::Duration> parse_duration(std::string_view text) {
  const auto ns = parse_quantity(text, kDurationUnits, kLongestDuration);
  if (!ns) return std::nullopt;
  return runtime::Duration(*ns);
}

std::string print_duration(runtime::Duration duration) {
  return duration.count() == 0 ? "0s" : print_quantity(duration.count(), kDurationUnits);
}

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  std::string_view rest = text;
  const std::optional<std::uint64_t> count = take_count(rest);
  if (count && rest.empty() && *count <= static_cast<std::uint64_t>(kMostBytes)) {
    return static_cast<std::int64_t>(*count);
  }
  return parse_quantity(text, kByteUnits, kMostBytes);
}

std::string print_bytes(std::int64_t bytes) { return print_quantity(bytes, kByteUnits); }

std::optional<std::int64_t> parse_rate(std::string_view text) {
  return parse_quantity(text, kRateUnits, kHighestRate);
}

std::string print_rate(std::int64_t bits_per_second) {
  return print_quantity(bits_per_second, kRateUnits);
}

bool Every::due(std::uint64_t iteration, std::uint64_t epoch, bool epoch_ended) const {
  if (unit == Unit::kNever || count == 0) return false;
  if (unit == Unit::kIterations) return iteration % count == 0;
  return epoch_ended && epoch % count == 0;
}

std::optional<Every> parse_every(std::string_view text) {
  if (text == "none") return Every{Every::Unit::kNever, 0};
  const std::optional<std::uint64_t> count = take_count(text);
  if (!count || *count == 0) return std::nullopt;
  if (text == "epoch" || text == "epochs") return Every{Every::Unit::kEpochs, *count};
  if (text == "iteration" || text == "iterations") {
    return Every{Every::Unit::kIterations, *count};
  }
  return std::nullopt;
}

std::string print_every(const Every& every) {
  if (every.unit == Every::Unit::kNever) return "none";
  const char* unit = every.unit == Every::Unit::kEpochs ? "epoch" : "iteration";
  return fmt::format("{} {}{}", every.count, unit, every.count == 1 ? "" : "s");
}

}  // namespace troupe::config
