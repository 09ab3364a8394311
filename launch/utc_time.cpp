#include "launch/utc_time.h"

#include <cstdio>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace troupe::launch {

std::string utc_text(std::chrono::system_clock::time_point time) {
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(static_cast<std::time_t>(ms / 1000)), ms % 1000);
}

std::chrono::system_clock::time_point utc_time(const std::string& text) {
  std::tm parts{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  int ms = 0;
  if (rest == nullptr || std::sscanf(rest, ".%3dZ", &ms) != 1) return {};
  return std::chrono::system_clock::from_time_t(::timegm(&parts)) + std::chrono::milliseconds(ms);
}

}  // namespace troupe::launch
