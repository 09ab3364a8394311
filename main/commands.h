#pragma once

// The verbs of the program, each made by its file.

#include <string>
#include <vector>

#include "main/command.h"

namespace troupe {

const Command& run_verb();
const Command& join_verb();
const Command& drain_verb();
const Command& watch_verb();
const Command& check_verb();
const Command& data_make_verb();
const Command& data_info_verb();
const Command& generate_verb();
const Command& inspect_verb();
const Command& keygen_verb();
const Command& token_verb();
const Command& completions_verb();
const Command& manual_verb();

// All of them, in the order of help.
const std::vector<const Command*>& all_verbs();

// Those of the list above that are shown.
std::vector<const Command*> shown_verbs();

// The options of the program itself, such as --version, without dashes.
const std::vector<std::string>& program_options();

// The group in a name of two words: "data" of "data make"; empty for other verbs.
std::string group_of(const Command& verb);

}  // namespace troupe
