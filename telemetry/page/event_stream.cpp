#include "telemetry/page/event_stream.h"

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "telemetry/page/web_request.h"

namespace troupe::telemetry {
namespace {

// The versions in "START-VERSION,VERSION", one per run. All are absent if the start is another one
// or their number is wrong. A run that the client has heard nothing of yet has none.
std::vector<std::optional<std::uint64_t>> versions_of(std::string_view id, std::uint64_t start,
                                                      std::size_t runs) {
  const std::vector<std::optional<std::uint64_t>> none(runs);
  const std::size_t dash = id.find('-');
  if (dash == std::string_view::npos || whole_number(id.substr(0, dash)) != start) return none;
  std::vector<std::optional<std::uint64_t>> versions;
  for (std::size_t at = dash; at != std::string_view::npos && versions.size() <= runs;) {
    const std::size_t behind = id.find(',', at + 1);
    const std::string_view text = id.substr(at + 1, behind - at - 1);
    versions.push_back(whole_number(text));
    if (!versions.back() && !text.empty()) return none;
    at = behind;
  }
  return versions.size() == runs ? versions : none;
}

}  // namespace

EventStream::EventStream(std::uint64_t start, std::string_view last_event_id,
                         std::vector<std::size_t> runs)
    : start_(start) {
  CHECK(!runs.empty(), "a stream follows at least one run");
  const auto versions = versions_of(last_event_id, start, runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) runs_.push_back({runs[i], false, versions[i]});
}

std::string EventStream::id() const {
  std::string text = fmt::format("{}-", start_);
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (i > 0) text += ',';
    if (runs_[i].version) text += fmt::format("{}", *runs_[i].version);
  }
  return text;
}

std::optional<EventStream::Event> EventStream::next(const std::vector<RunSource>& sources) {
  for (std::size_t tried = 0; tried < runs_.size(); ++tried) {
    Followed& one = runs_[turn_];
    turn_ = (turn_ + 1) % runs_.size();
    const History& history = *sources[one.run].history;
    if (one.begun && history.version() == *one.version) continue;
    one.begun = true;
    const History::Text text = one.version ? history.since(*one.version) : history.whole();
    const std::string_view kind = one.version ? "update" : "history";
    one.version = text.version;
    const std::string which = runs_.size() > 1 ? fmt::format(" {}", one.run) : "";
    return Event{fmt::format("event: {}{}\nid: {}\ndata: ", kind, which, id()), text.json};
  }
  return std::nullopt;
}

}  // namespace troupe::telemetry
