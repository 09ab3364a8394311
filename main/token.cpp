#include <chrono>
#include <iostream>

#include <fmt/format.h>

#include "config/units.h"
#include "launch/key_folder.h"
#include "main/command_line.h"
#include "main/commands.h"
#include "runtime/base/disk.h"

namespace troupe {
namespace {

namespace po = boost::program_options;

}  // namespace

int token_command(const Arguments& arguments) {
  CommandLine line("token DIR [--for TIME]",
                   "Prints a token with which a machine without keys may join, for a while, runs\n"
                   "whose cluster.keys is DIR; also one that goes on already.",
                   "troupe token keys --for 30min");
  line.positional("folder");
  line.add()("for", po::value<std::string>()->default_value("1h"),
             "how long it admits: 30s, 10min, 1h");
  if (const auto code = line.parse(arguments)) return *code;
  if (!line.has("folder")) return line.usage_error("which folder of keys?");
  const auto text = line.get<std::string>("for");
  const auto lifetime = config::parse_duration(text);
  if (!lifetime || *lifetime < std::chrono::seconds(1)) {
    return line.usage_error(fmt::format("--for: {} is no time such as 30s, 10min or 1h", text));
  }
  const auto folder = line.get<std::string>("folder");
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
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
      runtime::time_text(until), keys->own.public_key);
  return 0;
}

}  // namespace troupe
