#pragma once

// All that is worth showing of one run, in bounded memory, and what of it is new.

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
  // A node of nodes.json, which may stand in no record. `since`: when its state began.
  void take_node(const NodeFacts& facts, double since);
  // What a node tells of itself; it is left out where no record says that the node is up.
  // `clock_error`: see NodeState. True: the node's rates are those since the sample before.
  bool take_node(const NodeSample& sample, double time, double clock_error = 0.0);
  // Never waits for a text of all this to be made.
  void take_log(LogLine line);
  // How many metrics were left out so far. Those that found no room on a link do not count: nodes
  // tell of them.
  void set_dropped(std::uint64_t dropped);
  // The run has come to its end. `state`: "ended", "failed" (then `error` says why) or "stopped".
  // Nodes that were running have ended.
  void end(std::string state, std::string error);
  // A run that had ended is being resumed and has told nothing yet: it is "starting". Nothing
  // happens if it has told something since.
  void begin_again();
  // Forgets all that was taken, since the same run will be told from its beginning. Versions go on.
  // For those before this, since() gives whole().
  void clear();

  RunFacts facts() const;
  RunProgress progress() const;
  std::vector<NodeState> nodes() const;
  std::optional<NodeState> node(std::string_view name) const;
  // The newest number of each series, by name.
  std::vector<RecordPoint> latest() const;

  // Grows with everything that is taken.
  std::uint64_t version() const;
  // What came after `version`, which earlier news had. For 0, a version that is not known, or one
  // before clear(): all that is known, and "whole" is true.
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
