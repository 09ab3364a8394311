#pragma once

// The verbs of the binary. Each takes its own arguments (without the verb) and returns the exit
// code; results go to standard output, everything else to standard error.

#include <span>
#include <string>
#include <vector>

namespace troupe {

using Arguments = std::vector<std::string>;

int run_command(const Arguments& arguments);
int join_command(const Arguments& arguments);
int drain_command(const Arguments& arguments);
int watch_command(const Arguments& arguments);
int check_command(const Arguments& arguments);
int data_command(const Arguments& arguments);
int inspect_command(const Arguments& arguments);
int generate_command(const Arguments& arguments);
int keygen_command(const Arguments& arguments);
int token_command(const Arguments& arguments);

}  // namespace troupe
