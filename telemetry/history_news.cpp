#include "telemetry/history_news.h"

#include <algorithm>
#include <iterator>

namespace troupe::telemetry {
namespace {

// Where the curve stands in the list, or would stand.
auto place_of(auto& series, std::string_view name) {
  return std::lower_bound(
      series.begin(), series.end(), name,
      [](const auto& entry, const auto& to) { return std::string_view(entry.first) < to; });
}

template <class T>
void append(std::vector<T>& list, std::vector<T>& news, std::size_t most) {
  std::move(news.begin(), news.end(), std::back_inserter(list));
  if (list.size() > most) list.erase(list.begin(), list.end() - static_cast<std::ptrdiff_t>(most));
}

template <class T>
void replace(std::optional<T>& known, std::optional<T>& news) {
  if (news) known = std::move(news);
}

}  // namespace

const SeriesNews* HistoryNews::find(std::string_view curve) const {
  const auto found = place_of(series, curve);
  return found != series.end() && found->first == curve ? &found->second : nullptr;
}

void HistoryNews::take(HistoryNews news) {
  if (news.whole) {
    *this = std::move(news);
    return;
  }
  version = news.version;
  now = news.now;
  replace(run, news.run);
  replace(progress, news.progress);
  replace(nodes, news.nodes);
  replace(showers, news.showers);
  replace(bill, news.bill);
  for (auto& [name, told] : news.series) {
    auto known = place_of(series, name);
    if (known == series.end() || known->first != name)
      known = series.emplace(known, name, SeriesNews());
    auto& points = known->second.points;
    // The points up to `from` stay, and the news replace those behind it. News that begin further
    // on leave a gap, and are passed over.
    if (told.from > points.size()) continue;
    points.resize(told.from);
    append(points, told.points, SIZE_MAX);
    known->second.width = told.width;
  }
  append(marks, news.marks, kNotes);
  append(validations, news.validations, kNotes);
  append(log, news.log, kNotes);
}

}  // namespace troupe::telemetry
