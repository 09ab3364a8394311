#pragma once

// --key and --token of the verbs that talk to the head of a run.

#include <optional>

#include "launch/node_uplink.h"
#include "main/command_line.h"

namespace troupe {

// Before CommandLine::parse().
void add_credential_options(CommandLine& line);
// After it. An exit code when both were given (printed).
std::optional<int> take_credentials(const CommandLine& line, launch::NodeCredentials& credentials);

}  // namespace troupe
