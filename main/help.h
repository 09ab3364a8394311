#pragma once

// What is said of verbs and options, for the terminal, and the parts of it that the manual page has
// as well.

#include <string>
#include <vector>

#include "main/command.h"

namespace troupe {

// What `troupe --help` prints.
std::string help_of_program();
// What `troupe VERB --help` prints.
std::string help_of(const Command& command);
// What `troupe data --help` prints: the verbs below it.
std::string help_of_group(const std::string& group);

// How the command is called, each "run TOPOLOGY [OPTION]...".
std::vector<std::string> forms_of(const Command& command);
// A place in capitals: "TOPOLOGY".
std::string shown_name(const Place& place);
// Those that are shown, --help first.
std::vector<Option> shown_options(const Command& command);
// "--workers N"
std::string option_title(const Option& option);
// What the option does, with its default and that it may be repeated.
std::string option_text(const Option& option);

// One sentence on the program.
extern const char* const kProgramAbout;

}  // namespace troupe
