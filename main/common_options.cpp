#include "main/common_options.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <utility>

#include <fmt/format.h>

#include "config/field_search.h"
#include "config/shipped.h"
#include "config/workers.h"
#include "launch/machine/usable_machine.h"
#include "launch/meeting/node_uplink.h"
#include "main/files.h"
#include "runtime/base/clock.h"
#include "telemetry/page/token_file.h"

namespace troupe {
namespace {

// In the order of the levels.
constexpr std::array kLevels{"debug", "info", "warning", "error"};

constexpr std::uint64_t kMostThreads = 1024;
constexpr std::uint64_t kLongestSeconds = 7 * 24 * 3600;

constexpr const char* kVariable = "TROUPE_TOKEN";
constexpr const char* kStandardInput = "-";

// The first line of standard input, without the spaces around it.
runtime::Result<std::string> typed_token() {
  constexpr const char* kSpaces = " \t\r";
  std::string line;
  std::getline(std::cin, line);
  const std::size_t first = line.find_first_not_of(kSpaces);
  if (first == std::string::npos) {
    return runtime::Error{runtime::ErrorKind::kUsage,
                          "standard input holds no token; its first line is to be one"};
  }
  return line.substr(first, line.find_last_not_of(kSpaces) + 1 - first);
}

runtime::Result<launch::JoinToken> token_of(const CommandLine& line) {
  if (line.has("token-file")) {
    const auto file = line.get<std::string>("token-file");
    const bool typed = file == kStandardInput;
    ASSIGN_OR_RETURN(std::string token,
                     typed ? typed_token() : telemetry::read_token_file(file, "--token-file"));
    return launch::JoinToken{std::move(token), "--token-file " + file};
  }
  const auto token = line.get<std::string>("token");
  if (token == kStandardInput) {
    ASSIGN_OR_RETURN(std::string typed, typed_token());
    return launch::JoinToken{std::move(typed), "--token -"};
  }
  std::cerr << "troupe: warning: everybody on this machine can read a token on the command line; "
               "give it by --token-file FILE, by --token-file - or as "
            << kVariable << "\n";
  return launch::JoinToken{token, "--token"};
}

// Whether the address is of a head with keys, which alone has a use for a token.
bool has_key(const std::string& address) { return address.find('#') != std::string::npos; }

}  // namespace

Option device_option(const std::string& otherwise) {
  return {.name = "device",
          .value = "DEVICE",
          .about = fmt::format(
              "computes here, one of those that troupe devices lists (default: {})", otherwise),
          .takes = Takes::kWord,
          .words = config::words_of("actors.replica.device")};
}

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
          .preset = log_level_word(runtime::LogLevel::kInfo),
          .words = {kLevels.begin(), kLevels.end()}};
}

Option force_option() { return {.name = "force", .about = "replaces files that are there"}; }

Option latest_option() {
  return {.name = "latest", .about = "takes the newest checkpoint of a run's folder, not the best"};
}

Option raw_option() {
  return {.name = "raw",
          .about = "takes the weights as training left them, not the mean that train.mean keeps"};
}

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
  const auto word = std::find(kLevels.begin(), kLevels.end(), line.get<std::string>("log-level"));
  return static_cast<runtime::LogLevel>(word - kLevels.begin());
}

std::string log_level_word(runtime::LogLevel level) {
  return kLevels.at(static_cast<std::size_t>(level));
}

runtime::Result<runtime::Log> open_log(runtime::LogLevel level) {
  runtime::LogOptions options;
  options.level = level;
  return runtime::Log::open(options);
}

std::vector<std::string> log_level_words(runtime::LogLevel level) {
  if (level == runtime::LogLevel::kInfo) return {};
  return {"--log-level", log_level_word(level)};
}

WhichCheckpoint which_checkpoint(const CommandLine& line) {
  return line.get<bool>("latest") ? WhichCheckpoint::kLatest : WhichCheckpoint::kBest;
}

runtime::Result<std::string> checkpoint_of(const CommandLine& line, runtime::Disk& disk) {
  return checkpoint_at(line.get<std::string>("checkpoint"), disk, which_checkpoint(line));
}

std::vector<std::string> settings(const CommandLine& line) {
  std::vector<std::string> settings;
  line.take("set", settings);
  return settings;
}

std::vector<Option> credential_options() {
  return {{.name = "key",
           .value = "DIR",
           .about = "folder of keys, as troupe keygen makes it",
           .takes = Takes::kFolder},
          {.name = "token-file",
           .value = "FILE",
           .about = "instead of keys: file with what troupe token has printed; - reads a line of "
                    "standard input. The environment variable TROUPE_TOKEN does as well",
           .takes = Takes::kFile},
          {.name = "token",
           .value = "TOKEN",
           .about = "the token itself, which other users of this machine can then read; - as for "
                    "--token-file",
           .takes = Takes::kText}};
}

std::optional<int> take_credentials(const CommandLine& line, launch::NodeCredentials& credentials) {
  if (line.has("key") + line.has("token") + line.has("token-file") > 1) {
    return line.usage_error("one of --key, --token-file and --token, not several");
  }
  if (line.has("key")) {
    line.take("key", credentials.key_folder);
  } else if (line.has("token") || line.has("token-file")) {
    auto token = token_of(line);
    if (!token.ok()) return line.usage_error(token.error().message);
    credentials.token = std::move(*token);
  } else if (const char* token = std::getenv(kVariable);
             token != nullptr && *token != '\0' && has_key(line.get<std::string>("address"))) {
    credentials.token = {token, kVariable};
  }
  return std::nullopt;
}

pipeline::Progress event_progress(std::function<runtime::Result<void>()> check) {
  const auto start = runtime::steady_now();
  return [start, last = start, check = std::move(check)](
             std::uint64_t done, std::uint64_t total) mutable -> runtime::Result<void> {
    const auto now = runtime::steady_now();
    if (done > 0 && now - last > std::chrono::seconds(2)) {
      last = now;
      const double rate =
          static_cast<double>(done) / std::chrono::duration<double>(now - start).count();
      std::cerr << fmt::format("{} of {} events ({:.0f} %), {:.0f} events/s, {:.0f} s to go\n",
                               done, total,
                               100.0 * static_cast<double>(done) / static_cast<double>(total), rate,
                               static_cast<double>(total - done) / rate);
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
