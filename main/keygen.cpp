#include <algorithm>
#include <iostream>

#include <fmt/format.h>

#include "launch/key_folder.h"
#include "launch/nodes_file.h"
#include "main/command_line.h"
#include "main/commands.h"
#include "runtime/base/disk.h"
#include "runtime/base/json_text.h"

namespace troupe {
namespace {

namespace po = boost::program_options;
using runtime::json_string;

// It stands at the end of a line of the list.
bool is_name(const std::string& name) {
  constexpr std::size_t kMostCharacters = 100;
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  // The word "until" in the list is followed by a moment.
  return !name.empty() && name.size() <= kMostCharacters &&
         (" " + name + " ").find(" until ") == std::string::npos &&
         std::none_of(name.begin(), name.end(), is_control);
}

}  // namespace

int keygen_command(const Arguments& arguments) {
  CommandLine line("keygen DIR [--name NAME] [--json]",
                   "Makes the keys of a node, which connections between machines need: the secret\n"
                   "key, the public key, and the list of keys that may connect, with itself in it.",
                   "troupe keygen keys");
  line.positional("folder");
  line.add()("name", po::value<std::string>(),
             "what the list calls the key; by default this machine's name")(
      "json", po::bool_switch(), "print one JSON object");
  if (const auto code = line.parse(arguments)) return *code;
  if (!line.has("folder")) return line.usage_error("which folder?");
  std::string name = launch::host_name();
  if (name.empty()) name = "node";
  if (line.has("name")) name = line.get<std::string>("name");
  if (!is_name(name))
    return line.usage_error(
        "--name: a name of 1 to 100 characters, without the word 'until', is needed");
  const auto folder = line.get<std::string>("folder");
  runtime::FileDisk disk;
  const auto keys = launch::make_key_folder(folder, name, disk);
  if (!keys.ok()) return report(keys.error());
  if (line.get<bool>("json")) {
    std::cout << fmt::format(R"({{"folder":{},"name":{},"public_key":{}}})"
                             "\n",
                             json_string(folder), json_string(name),
                             json_string(keys->own.public_key));
    return 0;
  }
  std::cout << fmt::format(
      "{}  the node's own; keep it secret\n{}  may be given to anybody\n{}  who may connect; add "
      "the "
      "public key of other nodes, or copy the folder to them\nIn the topology: cluster: {{keys: "
      "{}}}\n",
      launch::secret_key_file(folder), launch::public_key_file(folder),
      launch::allowed_keys_file(folder), folder);
  return 0;
}

}  // namespace troupe
