#pragma once

// --key and --token of the verbs that talk to the head of a run.

#include <optional>
#include <vector>

#include "launch/node_uplink.h"
#include "main/command_line.h"

namespace troupe {

std::vector<Option> credential_options();
// An exit code when both were given (printed).
std::optional<int> take_credentials(const CommandLine& line, launch::NodeCredentials& credentials);

}  // namespace troupe
