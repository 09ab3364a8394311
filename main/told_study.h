#pragma once

// Tells people and other programs of a study.

#include <string>

#include "main/command_line.h"
#include "main/open_study.h"

namespace troupe {

// Prints its trials, with `json` as one object. Returns the code.
int tell_trials(const OpenStudy& open, bool json, const std::string& error = "", int code = 0);
// `troupe study DIR --report`, with the files and the page that the line asks for.
int tell_study(const CommandLine& line);

}  // namespace troupe
