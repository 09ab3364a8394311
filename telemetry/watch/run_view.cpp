#include "telemetry/watch/run_view.h"

#include <utility>

#include "runtime/base/json_reader.h"

namespace troupe::telemetry {
namespace {

// Points from `from` on are replaced.
void take_series(std::vector<double>& curve, const SeriesNews& news) {
  if (news.from > curve.size()) return;
  curve.resize(news.from);
  for (const SeriesPoint& point : news.points) {
    if (curve.size() < RunView::kMostPoints) curve.push_back(point.mean);
  }
}

template <class T>
void keep_newest(std::vector<T>& news, std::deque<T>& list) {
  for (T& item : news) list.push_back(std::move(item));
  if (list.size() > RunView::kNotes) {
    list.erase(list.begin(), list.end() - static_cast<std::ptrdiff_t>(RunView::kNotes));
  }
}

}  // namespace

bool RunView::is_over() const {
  return progress.state == "ended" || progress.state == "failed" || progress.state == "stopped";
}

bool RunView::take(std::string_view json) {
  HistoryNews news;
  if (!runtime::read_json(json, news) || news.version == 0) return false;
  if (news.whole) *this = RunView{};
  version = news.version;
  if (news.run) facts = std::move(*news.run);
  if (news.progress) progress = std::move(*news.progress);
  for (const auto& [name, series] : news.series) {
    if (curves.contains(name) || curves.size() < kMostCurves) take_series(curves[name], series);
  }
  if (news.nodes) nodes = std::move(*news.nodes);
  keep_newest(news.marks, marks);
  keep_newest(news.log, log);
  return true;
}

}  // namespace troupe::telemetry
