#pragma once

// Studies of the toy topology, and what they have found.

#include <gtest/gtest.h>
#include <sys/types.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"

namespace troupe {

inline constexpr const char* kStudy = R"(name: search
topology: toy.yaml
space:
  train.learning_rate.g: {log: [1e-4, 1e-2]}
  train.optimiser.g: {choice: [rmsprop, adam]}
  actors.validator.every: {choice: [1 epoch]}
  actors.validator.events: {choice: [20]}
objective: {minimise: merit}
)";

class StudyVerb : public ClusterRun {
 protected:
  void write_study(const std::string& more) const { write_text(path("s.yaml"), kStudy + more); }
  Words study_words(const std::string& name) const {
    return {"study", path("s.yaml"), "--out", path(name), "--json"};
  }
  JsonValue report_of(const std::string& name) const {
    const ProcessEnd end = call({"study", path(name), "--report", "--json"});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return last_line(end);
  }
  // The trials without what differs where a study was cut off.
  static std::vector<std::string> found_by(const JsonValue& report) {
    std::vector<std::string> found;
    for (const JsonValue& trial : report["trials"].list()) {
      std::string text = trial["state"].text();
      for (const auto& [path, value] : std::get<JsonValue::Object>(trial["settings"].content)) {
        text += " " + path + "=" + value.text();
      }
      for (const JsonValue& run : trial["runs"].list()) {
        text += " " + run["state_hash"].text() +
                (run["figure"].is_null() ? " none" : fmt::format(" {}", run["figure"].number()));
      }
      found.push_back(text);
    }
    return found;
  }
  // The name of a member besides the first one that has made steps of a run; "": none has.
  std::string joined(const std::string& run) const {
    if (!std::filesystem::exists(path(run + "/metrics.jsonl"))) return "";
    const std::string metrics = read_text(path(run + "/metrics.jsonl"));
    const std::string before = "\"joined\":[\"";
    const std::size_t at = metrics.find(before);
    if (at == std::string::npos) return "";
    const std::size_t from = at + before.size(), to = metrics.find('"', from);
    return to == std::string::npos ? "" : metrics.substr(from, to - from);
  }
  bool kill_member(const std::string& run, const std::string& name) const {
    const JsonValue nodes = parse_json(read_text(path(run + "/nodes.json")));
    for (const JsonValue& node : nodes.list()) {
      if (node["name"].text() != name) continue;
      return ::kill(static_cast<pid_t>(node["pid"].integer()), SIGKILL) == 0;
    }
    return false;
  }
  std::size_t lines_of(const std::string& name) const {
    const std::string text = read_text(path(name + "/study.jsonl"));
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
  }
};

}  // namespace troupe
