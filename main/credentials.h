#pragma once

// How the verbs that talk to the head of a run prove who they are: --key, --token-file, --token or
// the environment variable TROUPE_TOKEN, which counts when none of these is given.

#include <optional>

#include "launch/node_uplink.h"
#include "main/command_line.h"

namespace troupe {

// Before CommandLine::parse().
void add_credential_options(CommandLine& line);
// After it. May read standard input. An exit code when several were given, or one that cannot be
// read (printed).
std::optional<int> take_credentials(const CommandLine& line, launch::NodeCredentials& credentials);

}  // namespace troupe
