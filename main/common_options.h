#pragma once

// Options that several verbs have, and what they mean.

#include <string>
#include <vector>

#include "main/command_line.h"
#include "runtime/base/log.h"

namespace troupe {

Option setting_option();
Option workers_option(std::string about);
Option json_option();
// `about`: what the threads do.
Option threads_option(std::string about);
Option log_level_option();

// What log_level_option() was given.
runtime::LogLevel log_level(const CommandLine& line);
// The same as words for another process of the program; none when it is the preset.
std::vector<std::string> log_level_words(runtime::LogLevel level);
// Those of setting_option(), in their order.
std::vector<std::string> settings(const CommandLine& line);

// Says on standard error that the topology of this name is one that comes with the program, if it
// is.
void tell_if_shipped(const std::string& topology);

}  // namespace troupe
