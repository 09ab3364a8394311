#include "telemetry/page/event_stream.h"

#include <charconv>

#include <fmt/format.h>

namespace troupe::telemetry {
namespace {

// The version in "START-VERSION", if it is of this start.
std::optional<std::uint64_t> version_of(std::string_view id, std::uint64_t start) {
  const char* const end = id.data() + id.size();
  std::uint64_t of = 0, version = 0;
  const auto first = std::from_chars(id.data(), end, of);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '-' || of != start) {
    return std::nullopt;
  }
  const auto second = std::from_chars(first.ptr + 1, end, version);
  if (second.ec != std::errc{} || second.ptr != end) return std::nullopt;
  return version;
}

}  // namespace

EventStream::EventStream(std::uint64_t start, std::string_view last_event_id)
    : start_(start), version_(version_of(last_event_id, start)) {}

std::optional<EventStream::Event> EventStream::next(const History& history) {
  if (begun_ && history.version() == *version_) return std::nullopt;
  begun_ = true;
  const History::Text text = version_ ? history.since(*version_) : history.whole();
  const std::string_view kind = version_ ? "update" : "history";
  version_ = text.version;
  return Event{fmt::format("event: {}\nid: {}-{}\ndata: ", kind, start_, text.version), text.json};
}

}  // namespace troupe::telemetry
