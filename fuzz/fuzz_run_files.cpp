// The files of a run's folder, which `troupe watch` reads whoever wrote them: a line each, the
// first byte of it says of which file. All that is made of them is sound.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "fuzz/fit_screen.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/json_reader.h"
#include "telemetry/history.h"
#include "telemetry/open_metrics.h"
#include "telemetry/watch/run_files.h"

namespace {

using namespace troupe;

void take_line(char file, std::string_view line, telemetry::History& history) {
  if (file == 'n') {
    for (const telemetry::ListedNode& node : telemetry::read_nodes_file(line)) {
      history.take_node(node.facts, runtime::seconds_since_1970(node.since));
    }
  } else if (file == 'l') {
    history.take_log(telemetry::read_log_line(line));
  } else if (file == 's') {
    if (const auto end = telemetry::read_run_end(line)) history.end(end->state, end->error);
  } else if (const auto record = telemetry::read_record(line); record.ok()) {
    history.take(*record);
  }
}

void check_news(const telemetry::History::Text& text) {
  CHECK(nlohmann::json::accept(*text.json), "no JSON");
  CHECK(text.json->find('\n') == std::string::npos, "two lines");
  telemetry::HistoryNews news;
  CHECK(runtime::read_json(*text.json, news), "the terminal does not understand the page");
  fuzz::check_screen(news);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  telemetry::History history(
      {.points = 8, .most_series = 16, .marks = 4, .log_lines = 4, .nodes = 4});
  std::optional<std::uint64_t> version;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty()) continue;
    take_line(line[0], line.substr(1), history);
    if (!version) version = history.version();
  }
  check_news(history.whole());
  check_news(history.since(version.value_or(0)));
  telemetry::open_metrics(history, telemetry::MetricsFormat::kOpenMetrics);
  return 0;
}
