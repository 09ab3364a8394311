#include "main/common_options.h"

#include <chrono>
#include <iostream>
#include <utility>

#include <fmt/format.h>

#include "config/shipped.h"
#include "config/workers.h"
#include "launch/folder/run_log.h"
#include "launch/machine/usable_machine.h"
#include "runtime/base/clock.h"

namespace troupe {
namespace {

constexpr std::uint64_t kMostThreads = 1024;
constexpr std::uint64_t kLongestSeconds = 7 * 24 * 3600;

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

Option force_option() { return {.name = "force", .about = "replaces files that are there"}; }

Option seed_option(std::string about) {
  return {.name = "seed",
          .value = "S",
          .about = std::move(about),
          .takes = Takes::kWhole,
          .preset = "1"};
}

Option events_option(std::uint64_t least) {
  return {.name = "events",
          .value = "N",
          .about = "how many showers",
          .takes = Takes::kWhole,
          .preset = "1000",
          .least = least,
          .most = UINT32_MAX};
}

Option seconds_option(std::string name, std::string about, std::string preset,
                      std::uint64_t least) {
  return {.name = std::move(name),
          .value = "SECONDS",
          .about = std::move(about),
          .takes = Takes::kWhole,
          .preset = std::move(preset),
          .least = least,
          .most = kLongestSeconds};
}

runtime::LogLevel log_level(const CommandLine& line) {
  return launch::parse_log_level(line.get<std::string>("log-level")).value();
}

runtime::Result<runtime::Log> open_log(runtime::LogLevel level) {
  runtime::LogOptions options;
  options.level = level;
  return runtime::Log::open(options);
}

std::vector<std::string> log_level_words(runtime::LogLevel level) {
  if (level == runtime::LogLevel::kInfo) return {};
  return {"--log-level", launch::log_level_word(level)};
}

std::vector<std::string> settings(const CommandLine& line) {
  std::vector<std::string> settings;
  line.take("set", settings);
  return settings;
}

pipeline::Progress event_progress(std::function<runtime::Result<void>()> check) {
  auto last = runtime::steady_now();
  return [last, check = std::move(check)](std::uint64_t done,
                                          std::uint64_t total) mutable -> runtime::Result<void> {
    const auto now = runtime::steady_now();
    if (now - last > std::chrono::seconds(2)) {
      last = now;
      std::cerr << fmt::format("{} of {} events ({:.0f} %)\n", done, total,
                               100.0 * static_cast<double>(done) / static_cast<double>(total));
    }
    return check ? check() : runtime::Result<void>{};
  };
}

void tell_if_shipped(const std::string& topology) {
  if (!config::shipped_text(topology)) return;
  std::cerr << fmt::format("troupe: taking the topology {} that comes with the program\n",
                           topology);
}

}  // namespace troupe
