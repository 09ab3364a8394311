#pragma once

// All that is known of one run and worth showing, in bounded memory, and what of it is new.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/node_table.h"
#include "telemetry/record.h"
#include "telemetry/series.h"

namespace troupe::telemetry {

struct HistoryNews;

struct LogLine {
  double time = 0.0;  // seconds since 1970
  std::string level;  // "info", "warning", "error"
  std::string text;
};

// One number per series, for text formats.
struct LatestValue {
  std::string series;
  std::uint64_t step = 0;
  std::uint64_t count = 0;
  double value = 0.0;
};

struct RunProgress {
  std::string state;  // "starting", "training", "ended", "failed", "stopped"
  std::string error;  // of "failed"
  std::uint64_t steps = 0, iterations = 0, epochs = 0, events = 0;  // made
  std::uint64_t epoch = 0, all_epochs = 0;                          // as EpochCount has them
  double events_per_second = 0.0;                                   // lately
  std::optional<double> seconds_left;                               // nothing: cannot be told
  std::uint64_t dropped = 0;                                        // metrics that found no room
  double began = 0.0, newest = 0.0;                                 // seconds since 1970
  double node_hours = 0.0, core_hours = 0.0, cost = 0.0;            // so far
};

// It has ended, failed or was stopped: nothing more comes.
inline bool is_over(const RunProgress& progress) {
  return progress.state == "ended" || progress.state == "failed" || progress.state == "stopped";
}

struct HistoryOptions {
  std::size_t points = 1024;      // of each series
  std::size_t most_series = 512;  // further ones are counted as dropped
  std::size_t marks = 1000;       // the newest
  std::size_t log_lines = 500;
  std::size_t nodes = 4096;
};

// Any thread.
class History {
 public:
  explicit History(HistoryOptions options = {});

  ~History();

  // In the order of metrics.jsonl.
  void take(const Record& record);
  // A node of nodes.json, which no record need have named. `since`: when its state began.
  void take_node(const NodeFacts& facts, double since);
  // Of a node that a record told of; others are left out. `clock_error`: see NodeState. True: its
  // rates are those since the sample before.
  bool take_node(const NodeSample& sample, double time, double clock_error = 0.0);
  // Waits for nobody that makes a text of all this.
  void take_log(LogLine line);
  // What was left out so far, but for messages that found no room on a link, of which nodes tell.
  void set_dropped(std::uint64_t dropped);
  // "ended", "failed" with why, "stopped". Nodes that were running have ended.
  void end(std::string state, std::string error);
  // A run that had ended is being resumed, and has told nothing yet: it is "starting". One that has
  // told something since is left as it is.
  void begin_again();
  // Forgets all that was taken: the same run will be told from its beginning. Versions go on, and
  // of those before this since() gives whole().
  void clear();

  RunFacts facts() const;
  RunProgress progress() const;
  std::vector<NodeState> nodes() const;
  std::optional<NodeState> node(std::string_view name) const;
  std::vector<LatestValue> latest() const;

  // Grows with everything that is taken.
  std::uint64_t version() const;
  // What came after `version`, which news before had. For 0, for a version that is not known, or
  // one before clear(): all that is known, and "whole" is true.
  HistoryNews news(std::uint64_t version) const;
  struct Text {
    std::uint64_t version = 0;
    std::shared_ptr<const std::string> json;  // one line
  };
  // The news as docs/watching.md has them. The same text is handed to all who ask for the same.
  Text since(std::uint64_t version) const;
  Text whole() const { return since(0); }

 private:
  struct Content;
  std::unique_ptr<Content> content_;
};

}  // namespace troupe::telemetry
