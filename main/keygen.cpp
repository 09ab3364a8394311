#include <algorithm>
#include <iostream>

#include <fmt/format.h>

#include "launch/meeting/key_folder.h"
#include "main/command_line.h"
#include "main/common_options.h"
#include "runtime/base/disk.h"
#include "runtime/base/host_name.h"
#include "runtime/base/json_text.h"

namespace troupe {
namespace {

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

int make_keys(const CommandLine& line) {
  std::string name = runtime::host_name();
  if (name.empty()) name = "node";
  line.take("name", name);
  if (!is_name(name))
    return line.usage_error(
        "--name: a name of 1 to 100 characters, without the word 'until', is needed");
  const auto folder = line.get<std::string>("dir");
  runtime::FileDisk disk;
  const auto keys = launch::make_key_folder(folder, name, disk);
  if (!keys.ok()) return report(keys.error());
  if (line.get<bool>("json")) {
    answer(fmt::format(R"("folder":{},"name":{},"public_key":{})", json_string(folder),
                       json_string(name), json_string(keys->own.public_key)));
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

}  // namespace

Command keygen_verb() {
  return {.name = "keygen",
          .summary = "node keys, for connections between machines",
          .about =
              "Makes the keys of a node, which connections between machines need: the secret key, "
              "the public key, and the list of keys that may connect, with itself in it.",
          .example = "troupe keygen keys",
          .places = {{.name = "dir", .asked = "which folder?", .takes = Takes::kFolder}},
          .options = {{.name = "name",
                       .value = "NAME",
                       .about = "what the list calls the key; by default this machine's name",
                       .takes = Takes::kText},
                      json_option()},
          .carry_out = make_keys};
}

}  // namespace troupe
