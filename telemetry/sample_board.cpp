#include "telemetry/sample_board.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe::telemetry {

SampleBoard::SampleBoard(SampleBoardOptions options) : options_(options) {}

void SampleBoard::take(std::string_view sender, std::string_view name, double value) {
  if (!std::isfinite(value) || sender.size() + 1 + name.size() > options_.most_name_bytes) {
    ++left_out_;
    return;
  }
  series_.assign(sender).append(1, '/').append(name);
  auto found = tallies_.find(std::string_view(series_));
  // A count of 0 is a series of the line before, which begins anew with this one.
  if (found == tallies_.end() || found->second.count == 0) {
    if (told_ == options_.most_series) {
      ++left_out_;
      return;
    }
    ++told_;
    if (found == tallies_.end()) found = tallies_.emplace(series_, SampleFigures{}).first;
    found->second = {1, value, value, value, value};
    return;
  }
  SampleFigures& tally = found->second;
  ++tally.count;
  // Their sum is not needed: it could be beyond a double.
  tally.mean +=
      value / static_cast<double>(tally.count) - tally.mean / static_cast<double>(tally.count);
  tally.low = std::min(tally.low, value);
  tally.high = std::max(tally.high, value);
  tally.last = value;
}

SampleFacts SampleBoard::take_values() {
  SampleFacts facts;
  for (const auto& [series, tally] : tallies_) {
    if (tally.count > 0) facts.values.emplace_back(series, tally);
  }
  std::erase_if(tallies_, [](const auto& each) { return each.second.count == 0; });
  for (auto& [series, tally] : tallies_) tally = {};
  told_ = 0;
  return facts;
}

}  // namespace troupe::telemetry
