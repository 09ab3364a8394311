#pragma once

// How the verbs that talk to the head of a run prove who they are: --key, --token-file, --token or
// the environment variable TROUPE_TOKEN. The variable counts when none of these is given and the
// head has keys: members of a run on this host alone inherit it as well.

#include <optional>
#include <vector>

#include "launch/meeting/node_uplink.h"
#include "main/command_line.h"

namespace troupe {

std::vector<Option> credential_options();
// For a verb with the place `address`. May read standard input. An exit code when several were
// given, or one that cannot be read (printed).
std::optional<int> take_credentials(const CommandLine& line, launch::NodeCredentials& credentials);

}  // namespace troupe
