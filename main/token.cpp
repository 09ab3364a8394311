#include <chrono>
#include <iostream>

#include <fmt/format.h>

#include "config/units.h"
#include "launch/meeting/key_folder.h"
#include "main/command_line.h"
#include "runtime/base/clock.h"
#include "runtime/base/disk.h"
#include "runtime/base/utc_time.h"

namespace troupe {
namespace {

int print_token(const CommandLine& line) {
  const auto text = line.get<std::string>("for");
  const auto lifetime = config::parse_duration(text);
  if (!lifetime || *lifetime < std::chrono::seconds(1)) {
    return line.usage_error(fmt::format("--for: {} is no time such as 30s, 10min or 1h", text));
  }
  const auto folder = line.get<std::string>("dir");
  const auto now = std::chrono::floor<std::chrono::seconds>(runtime::wall_now());
  const auto until = now + std::chrono::ceil<std::chrono::seconds>(*lifetime);
  const auto keys = launch::read_key_folder(folder);
  if (!keys.ok()) return report(keys.error());
  runtime::FileDisk disk;
  const auto token = launch::make_join_token(folder, now, until, disk);
  if (!token.ok()) return report(token.error());
  std::cout << *token << "\n";
  std::cerr << fmt::format(
      "until {}; on the other machine, with the token in a file: troupe join 'ADDRESS#{}' "
      "--token-file FILE\n(--token-file - reads it from standard input, and TROUPE_TOKEN does "
      "without a file)\n",
      runtime::utc_text(until), keys->own.public_key);
  return 0;
}

}  // namespace

Command token_verb() {
  return {.name = "token",
          .summary = "let a machine without keys join, for a while",
          .about =
              "Prints a token with which a machine without keys may join, for a while, runs whose "
              "cluster.keys is DIR; also one that goes on already.",
          .example = "troupe token keys --for 30min",
          .places = {{.name = "dir", .asked = "which folder of keys?", .takes = Takes::kFolder}},
          .options = {{.name = "for",
                       .value = "TIME",
                       .about = "how long it admits: 30s, 10min, 1h",
                       .takes = Takes::kText,
                       .preset = "1h"}},
          .carry_out = print_token};
}

}  // namespace troupe
