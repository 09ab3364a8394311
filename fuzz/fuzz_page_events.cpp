// What a page's server that nobody need trust tells `troupe watch`: a stream of events, in pieces.
// In other pieces it is the same, and what is shown of it fits a terminal and does nothing to it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fit_screen.h"
#include "runtime/base/error.h"
#include "runtime/base/json_reader.h"
#include "telemetry/watch/event_reader.h"

namespace {

using namespace troupe;
using telemetry::EventReader;

constexpr std::size_t kMostBytes = 4096;

std::vector<std::string> events(std::string_view bytes, std::size_t piece) {
  std::vector<std::string> told;
  EventReader reader(
      [&](const EventReader::Event& event) {
        CHECK(event.name.size() + event.data.size() <= kMostBytes, "a long event");
        told.push_back(event.name + '\0' + event.id + '\0' + event.data);
      },
      kMostBytes);
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    if (!reader.read(bytes.substr(at, piece))) break;
  }
  return told;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto told = events(bytes, std::size_t{data[0]} + 1);
  CHECK(told == events(bytes, 1), "other pieces are other events");
  telemetry::HistoryNews run;
  for (const std::string& event : told) {
    telemetry::HistoryNews news;
    if (runtime::read_json(event.substr(event.rfind('\0') + 1), news)) run.take(std::move(news));
  }
  fuzz::check_screen(run);
  return 0;
}
