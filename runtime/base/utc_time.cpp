#include "runtime/base/utc_time.h"

#include <cstdio>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace troupe::runtime {

std::string utc_text(std::chrono::sys_time<std::chrono::milliseconds> time) {
  const auto ms = time.time_since_epoch().count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(static_cast<std::time_t>(ms / 1000)), ms % 1000);
}

std::string utc_text(std::chrono::sys_seconds time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(static_cast<std::time_t>(time.time_since_epoch().count())));
}

std::optional<std::chrono::sys_time<std::chrono::milliseconds>> read_utc(const std::string& text) {
  std::tm parts{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return std::nullopt;
  const std::chrono::sys_seconds second{std::chrono::seconds(::timegm(&parts))};
  int ms = 0;
  std::sscanf(rest, ".%3dZ", &ms);
  const std::chrono::sys_time<std::chrono::milliseconds> time =
      second + std::chrono::milliseconds(ms);
  // The system reads more than it writes: it takes the 31st of a February for a day in March.
  if (text != utc_text(second) && text != utc_text(time)) return std::nullopt;
  return time;
}

}  // namespace troupe::runtime
