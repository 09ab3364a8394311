// Scripts with which shells complete the words of a command line, made from the tables of the
// verbs.

#include <iostream>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "config/shipped.h"
#include "launch/processes/shell_word.h"
#include "main/command_line.h"
#include "main/help.h"

namespace troupe {
namespace {

using Words = std::vector<std::string>;

// The first words of all verbs, each once.
Words first_words() {
  Words words;
  std::set<std::string> seen;
  for (const Command* verb : shown_verbs()) {
    const std::string word = verb->name.substr(0, verb->name.find(' '));
    if (seen.insert(word).second) words.push_back(word);
  }
  return words;
}

Words program_words() {
  Words words = first_words();
  words.emplace_back("help");
  for (const std::string& option : program_options()) words.push_back("--" + option);
  return words;
}

// Groups and the second words of their verbs.
std::vector<std::pair<std::string, Words>> groups() {
  std::vector<std::pair<std::string, Words>> all;
  for (const Command* verb : shown_verbs()) {
    const std::string group = group_of(*verb);
    if (group.empty()) continue;
    if (all.empty() || all.back().first != group) all.push_back({group, {}});
    all.back().second.push_back(verb->name.substr(group.size() + 1));
  }
  return all;
}

// The words that may stand in a place, besides files and folders.
Words place_words(const Place& place) {
  return place.takes == Takes::kTopology ? config::shipped_names() : place.words;
}

bool takes_path(Takes takes) {
  return takes == Takes::kFile || takes == Takes::kFolder || takes == Takes::kTopology ||
         takes == Takes::kRun;
}

// compgen's words for what is given there.
std::string bash_choice(Takes takes, const Words& words) {
  std::string choice = words.empty() ? "" : fmt::format(" -W '{}'", fmt::join(words, " "));
  if (takes == Takes::kFolder) return choice + " -d";
  return takes_path(takes) ? choice + " -f" : choice;
}

std::string bash_verb(const Command& verb) {
  Words names;
  std::string values;
  for (const Option& option : shown_options(verb)) {
    names.push_back("--" + option.name);
    if (option.takes == Takes::kNothing) continue;
    values += fmt::format("        --{}) choice=\"{}\" ;;\n", option.name,
                          bash_choice(option.takes, option.words));
  }
  const std::string place = verb.places.empty() ? ""
                                                : bash_choice(verb.places.front().takes,
                                                              place_words(verb.places.front()));
  return fmt::format(
      "    '{}')\n      options='{}'\n      choice=\"{}\"\n      case $before in\n{}"
      "        *) before= ;;\n      esac ;;\n",
      verb.name, fmt::join(names, " "), place, values);
}

// The script sets the verb's options and, in `choice`, what may stand behind the word before.
std::string bash() {
  std::string verbs, groups_text;
  for (const Command* verb : shown_verbs()) verbs += bash_verb(*verb);
  for (const auto& [group, words] : groups()) {
    groups_text += fmt::format(
        "    {})\n      [ \"$COMP_CWORD\" -eq 2 ] && {{ COMPREPLY=($(compgen -W '{}' -- "
        "\"$word\")); return; }}\n      verb=\"$verb ${{COMP_WORDS[2]}}\" ;;\n",
        group, fmt::join(words, " "));
  }
  return fmt::format(R"(# bash completion for troupe, made by: troupe completions bash
_troupe() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  local verb=${{COMP_WORDS[1]}} options= choice=
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{}' -- "$word"))
    return
  fi
  case $verb in
    help) COMPREPLY=($(compgen -W '{}' -- "$word")); return ;;
{}  esac
  case $verb in
{}    *) return ;;
  esac
  if [ -z "$before" ] && [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [ -n "$choice" ]; then
    [[ $choice == *\ -[df] ]] && compopt -o filenames
    local found
    found=$(eval "compgen $choice -- \"\$word\"")
    local IFS=$'\n'
    COMPREPLY=($found)
  fi
}}
complete -F _troupe troupe
)",
                     fmt::join(program_words(), " "), fmt::join(first_words(), " "), groups_text,
                     verbs);
}

// Text within the brackets and between the colons of zsh's specifications.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(Takes takes, const Words& words) {
  if (!words.empty() && takes_path(takes)) {
    return fmt::format("{{compadd {}; _files}}", fmt::join(words, " "));
  }
  if (!words.empty()) return fmt::format("({})", fmt::join(words, " "));
  if (takes == Takes::kFolder) return "_files -/";
  return takes_path(takes) ? "_files" : " ";
}

std::string zsh_verb(const Command& verb) {
  std::string out = fmt::format("    {})\n      _arguments", launch::quoted(verb.name));
  for (const Option& option : shown_options(verb)) {
    std::string spec =
        fmt::format("{}--{}[{}]", option.repeats ? "*" : "", option.name, zsh_text(option.about));
    if (option.takes != Takes::kNothing) {
      spec += fmt::format(":{}:{}", zsh_text(option.value), zsh_action(option.takes, option.words));
    }
    out += " \\\n        " + launch::quoted(spec);
  }
  for (const Place& place : verb.places) {
    out += " \\\n        " +
           launch::quoted(fmt::format("{}:{}:{}", place.repeats ? "*" : "", zsh_text(place.name),
                                      zsh_action(place.takes, place_words(place))));
  }
  return out + " ;;\n";
}

// The script serves both ways, which its last lines tell apart: zsh loads it as the function of
// that name, or somebody sources it.
std::string zsh() {
  std::string verbs, groups_text;
  for (const Command* verb : shown_verbs()) verbs += zsh_verb(*verb);
  for (const auto& [group, words] : groups()) {
    groups_text += fmt::format(
        "    {})\n      (( CURRENT == 2 )) && {{ compadd {}; return }}\n      verb=\"$verb "
        "$words[2]\"\n      shift words\n      (( CURRENT-- )) ;;\n",
        group, fmt::join(words, " "));
  }
  return fmt::format(R"(#compdef troupe
# zsh completion for troupe, made by: troupe completions zsh
_troupe() {{
  if (( CURRENT == 2 )); then
    compadd -- {}
    return
  fi
  shift words
  (( CURRENT-- ))
  local verb=$words[1]
  case $verb in
    help) compadd {}; return ;;
{}  esac
  case $verb in
{}  esac
}}
if [ "$funcstack[1]" = _troupe ]; then
  _troupe "$@"
else
  compdef _troupe troupe
fi
)",
                     fmt::join(program_words(), " "), fmt::join(first_words(), " "), groups_text,
                     verbs);
}

// Where the words so far begin with the verb.
std::string fish_condition(const Command& verb) {
  const std::string group = group_of(verb);
  if (group.empty()) return fmt::format("__fish_seen_subcommand_from {}", verb.name);
  return fmt::format("__fish_seen_subcommand_from {}; and __fish_seen_subcommand_from {}", group,
                     verb.name.substr(group.size() + 1));
}

std::string fish_line(const std::string& condition, const std::string& rest) {
  return fmt::format("complete -c troupe -n {} {}\n", launch::quoted(condition), rest);
}

// -x: this and no file; -r: a value, which may be a file.
std::string fish_value(const Option& option) {
  if (option.takes == Takes::kNothing) return "";
  if (!option.words.empty())
    return fmt::format(" -x -a {}",
                       launch::quoted(fmt::format("{}", fmt::join(option.words, " "))));
  if (option.takes == Takes::kFolder) return " -x -a '(__fish_complete_directories)'";
  return takes_path(option.takes) ? " -r -F" : " -x";
}

std::string fish_verb(const Command& verb) {
  std::string out;
  const std::string condition = fish_condition(verb);
  for (const Option& option : shown_options(verb)) {
    out += fish_line(condition, fmt::format("-l {}{} -d {}", option.name, fish_value(option),
                                            launch::quoted(option.about)));
  }
  if (verb.places.empty()) return out;
  const Place& place = verb.places.front();
  const Words words = place_words(place);
  if (!words.empty()) {
    out += fish_line(
        condition, fmt::format("-a {}", launch::quoted(fmt::format("{}", fmt::join(words, " ")))));
  }
  if (takes_path(place.takes)) out += fish_line(condition, "-F");
  return out;
}

// Each line offers words under a condition on those that stand there: none yet, a group without the
// verb's second word, or a whole verb.
std::string fish() {
  std::string out =
      "# fish completion for troupe, made by: troupe completions fish\ncomplete -c troupe -f\n";
  for (const std::string& option : program_options()) {
    out += fish_line("__fish_use_subcommand", "-l " + option);
  }
  for (const std::string& word : first_words()) {
    std::string about;
    for (const Command* verb : shown_verbs()) {
      if (verb->name == word) about = verb->summary;
    }
    out += fish_line(
        "__fish_use_subcommand",
        fmt::format("-a {}{}", word, about.empty() ? "" : " -d " + launch::quoted(about)));
  }
  out += fish_line("__fish_use_subcommand", "-a help");
  out += fish_line("__fish_seen_subcommand_from help",
                   fmt::format("-a '{}'", fmt::join(first_words(), " ")));
  for (const auto& [group, words] : groups()) {
    out +=
        fish_line(fmt::format("__fish_seen_subcommand_from {}; and not "
                              "__fish_seen_subcommand_from {}",
                              group, fmt::join(words, " ")),
                  fmt::format("-a {}", launch::quoted(fmt::format("{}", fmt::join(words, " ")))));
  }
  for (const Command* verb : shown_verbs()) out += fish_verb(*verb);
  return out;
}

int print_completions(const CommandLine& line) {
  const auto shell = line.get<std::string>("shell");
  std::cout << (shell == "bash" ? bash() : shell == "zsh" ? zsh() : fish());
  return 0;
}

}  // namespace

Command completions_verb() {
  return {.name = "completions",
          .summary = "what a shell needs to complete the words of a command line",
          .about =
              "Prints what bash, zsh or fish needs to complete verbs, options and their values. "
              "Where the program is installed, the shell finds it by itself.",
          .example = "troupe completions bash > ~/.local/share/bash-completion/completions/troupe",
          .places = {{.name = "shell",
                      .asked = "for which shell: bash, zsh or fish?",
                      .takes = Takes::kWord,
                      .words = {"bash", "zsh", "fish"}}},
          .carry_out = print_completions};
}

}  // namespace troupe
