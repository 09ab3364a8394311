#pragma once

// The help on verbs and options, for the terminal, and the parts of it that the manual page has
// as well.

#include <string>
#include <vector>

#include "main/command.h"

namespace troupe {

// Printed by `troupe --help`.
std::string help_of_program();
// Printed by `troupe VERB --help`.
std::string help_of(const Command& command);
// Printed by `troupe data --help`: the verbs below it.
std::string help_of_group(const std::string& group);

// How the command is called, each "run TOPOLOGY [OPTION]...".
std::vector<std::string> forms_of(const Command& command);
// A place in capitals: "TOPOLOGY".
std::string shown_name(const Place& place);
// Those that are shown, --help first.
std::vector<Option> shown_options(const Command& command);
// "--workers N"
std::string option_title(const Option& option);
// The option's purpose, with its default and that it may be repeated.
std::string option_text(const Option& option);

// One sentence on the program.
extern const char* const kProgramAbout;

}  // namespace troupe
