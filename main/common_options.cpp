#include "main/common_options.h"

#include <iostream>
#include <utility>

#include <fmt/format.h>

#include "config/shipped.h"
#include "config/workers.h"
#include "launch/folder/run_log.h"
#include "launch/machine/usable_machine.h"

namespace troupe {
namespace {

constexpr std::uint64_t kMostThreads = 1024;

}  // namespace

Option setting_option() {
  return {.name = "set",
          .value = "a.b=c",
          .about = "sets one value of the topology",
          .takes = Takes::kSetting,
          .repeats = true};
}

Option workers_option(std::string about) {
  return {.name = "workers",
          .value = "N",
          .about = std::move(about),
          .takes = Takes::kWhole,
          .most = config::kMostMembers};
}

Option json_option() {
  return {.name = "json",
          .about = "ends standard output with one JSON object, also where the verb fails"};
}

Option threads_option(std::string about) {
  return {.name = "threads",
          .value = "N",
          .about = std::move(about),
          .takes = Takes::kWhole,
          .preset = std::to_string(launch::usable_processors()),
          .preset_shown = "as many as there are processors",
          .least = 1,
          .most = kMostThreads};
}

Option log_level_option() {
  return {.name = "log-level",
          .value = "LEVEL",
          .about = "logs nothing below this level",
          .takes = Takes::kWord,
          .preset = launch::log_level_word(runtime::LogLevel::kInfo),
          .words = launch::log_level_words()};
}

runtime::LogLevel log_level(const CommandLine& line) {
  return launch::parse_log_level(line.get<std::string>("log-level")).value();
}

std::vector<std::string> log_level_words(runtime::LogLevel level) {
  if (level == runtime::LogLevel::kInfo) return {};
  return {"--log-level", launch::log_level_word(level)};
}

std::vector<std::string> settings(const CommandLine& line) {
  return line.has("set") ? line.get<std::vector<std::string>>("set") : std::vector<std::string>{};
}

void tell_if_shipped(const std::string& topology) {
  if (!config::shipped_text(topology)) return;
  std::cerr << fmt::format("troupe: taking the topology {} that comes with the program\n",
                           topology);
}

}  // namespace troupe
