#pragma once

// The answers to words that are wrong, with what may have been meant. Pure, but that a word which
// is the name of a file is taken for that.

#include <string>

#include "main/command.h"

namespace troupe {

// An option that the command does not have; `next` is the word behind it, which may be its value. A
// command with --set suggests fields of the topology besides its own options.
std::string unknown_option(const Command& command, const std::string& word,
                           const std::string& next);
// A word for which there is no place.
std::string surplus_word(const Command& command, const std::string& word);

// `--set KEY NEXT`, or at the end of the line.
std::string setting_without_equals(const std::string& key, const std::string& next);
// A word such as "epochs=3" or "data.train=b.h5" without --set, behind the word `before`; empty
// when it is none.
std::string stray_setting(const std::string& word, const std::string& before);
// `--set SETTING WORD`, where the word turned out to have no place.
std::string word_behind_setting(const std::string& setting, const std::string& word);
// Whether the word is one in place of a topology, as far as its name tells: one of a file, or of a
// topology that comes with the program.
bool names_topology(const std::string& word);

// Words behind "troupe" that begin with no verb.
std::string unknown_verb(const Arguments& words);

}  // namespace troupe
