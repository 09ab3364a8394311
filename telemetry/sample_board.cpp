#include "telemetry/sample_board.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "runtime/base/json_text.h"

namespace troupe::telemetry {

SampleBoard::SampleBoard(SampleBoardOptions options) : options_(options) {}

void SampleBoard::take(std::string_view sender, std::string_view name, double value) {
  if (!std::isfinite(value) || sender.size() + 1 + name.size() > options_.most_name_bytes) {
    ++left_out_;
    return;
  }
  series_.assign(sender).append(1, '/').append(name);
  auto found = tallies_.find(std::string_view(series_));
  if (found == tallies_.end() || found->second.count == 0) {
    if (told_ == options_.most_series) {
      ++left_out_;
      return;
    }
    ++told_;
    if (found == tallies_.end()) found = tallies_.emplace(series_, Tally{}).first;
    found->second = {1, value, value, value, value};
    return;
  }
  Tally& tally = found->second;
  ++tally.count;
  // Without their sum, which could be beyond a double.
  tally.mean +=
      value / static_cast<double>(tally.count) - tally.mean / static_cast<double>(tally.count);
  tally.low = std::min(tally.low, value);
  tally.high = std::max(tally.high, value);
  tally.last = value;
}

std::string SampleBoard::take_values() {
  std::map<std::string_view, const Tally*> sorted;
  for (const auto& [series, tally] : tallies_) {
    if (tally.count > 0) sorted.emplace(series, &tally);
  }
  std::string text(1, '{');
  for (const auto& [series, tally] : sorted) {
    if (text.size() > 1) text.push_back(',');
    fmt::format_to(std::back_inserter(text), "{}:[{},{},{},{},{}]", runtime::json_string(series),
                   tally->count, runtime::json_number(tally->mean),
                   runtime::json_number(tally->low), runtime::json_number(tally->high),
                   runtime::json_number(tally->last));
  }
  text.push_back('}');
  std::erase_if(tallies_, [](const auto& each) { return each.second.count == 0; });
  for (auto& [series, tally] : tallies_) tally = {};
  told_ = 0;
  return text;
}

}  // namespace troupe::telemetry
