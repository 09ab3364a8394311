#include "main/help.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include <fmt/format.h>

namespace troupe {

const char* const kProgramAbout =
    "Troupe trains generative models of particle detectors; the trained bits do not depend on how "
    "many workers there were.";

namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kOptionColumn = 24;
constexpr std::size_t kVerbColumn = 14;

// The words of the text in lines, each behind `indent` spaces but for the first, which begins at
// that column already.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (column > indent && column + 1 + word.size() > kColumns) {
      out.append(1, '\n').append(indent, ' ');
      column = indent;
    }
    if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

// "  TITLE   text", the text from a column on, or below where the title reaches it.
std::string row(const std::string& title, const std::string& text, std::size_t column) {
  std::string out = fmt::format("  {}", title);
  if (out.size() + 2 > column) {
    out.append(1, '\n').append(column, ' ');
  } else {
    out.append(column - out.size(), ' ');
  }
  return out + wrapped(text, column) + "\n";
}

std::string usage(const std::vector<std::string>& forms) {
  std::string out;
  for (const std::string& form : forms) {
    out += fmt::format("{}troupe {}\n", out.empty() ? "usage: " : "       ", form);
  }
  return out;
}

}  // namespace

std::string shown_name(const Place& place) {
  std::string name = place.name;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

std::vector<std::string> forms_of(const Command& command) {
  std::vector<std::string> forms;
  for (const std::string& form : command.forms) {
    forms.push_back(fmt::format("{} {}", command.name, form));
  }
  if (!forms.empty()) return forms;
  std::string form = command.name;
  for (const Place& place : command.places) {
    form += fmt::format(" {}{}", shown_name(place), place.repeats ? "..." : "");
  }
  if (shown_options(command).size() > 1) form += " [OPTION]...";
  return {form};
}

std::vector<Option> shown_options(const Command& command) {
  std::vector<Option> options{{.name = "help", .about = "print this and end"}};
  std::copy_if(command.options.begin(), command.options.end(), std::back_inserter(options),
               [](const Option& option) { return !option.hidden; });
  return options;
}

std::string option_title(const Option& option) {
  return fmt::format("--{}{}{}", option.name, option.value.empty() ? "" : " ", option.value);
}

std::string option_text(const Option& option) {
  std::string text = option.about;
  const std::string& preset = option.preset_shown.empty() ? option.preset : option.preset_shown;
  if (!option.words.empty()) text += fmt::format(": {}", fmt::join(option.words, ", "));
  if (!preset.empty()) text += fmt::format(" (default {})", preset);
  if (option.repeats) text += "; may be repeated";
  return text;
}

std::string help_of(const Command& command) {
  std::string out =
      fmt::format("{}\n{}\n\nOptions:\n", usage(forms_of(command)), wrapped(command.about, 0));
  for (const Option& option : shown_options(command)) {
    out += row(option_title(option), option_text(option), kOptionColumn);
  }
  return out + fmt::format("\nExample:\n  {}\n", command.example);
}

std::string help_of_program() {
  std::string out = fmt::format("{}\n\nusage: troupe VERB ...\n\n", wrapped(kProgramAbout, 0));
  for (const Command* verb : shown_verbs()) {
    out += row(verb->name, verb->summary, kVerbColumn + 2);
  }
  return out +
         "\ntroupe VERB --help shows the options of a verb and an example, troupe --version what\n"
         "this build can do.\n";
}

std::string help_of_group(const std::string& group) {
  std::vector<std::string> forms;
  std::string verbs, example;
  for (const Command* verb : shown_verbs()) {
    if (group_of(*verb) != group) continue;
    for (const std::string& form : forms_of(*verb)) forms.push_back(form);
    verbs += row(verb->name, verb->summary, kVerbColumn + 2);
    example = verb->example;
  }
  return fmt::format("{}\n{}\nEach has a --help of its own.\n\nExample:\n  {}\n", usage(forms),
                     verbs, example);
}

}  // namespace troupe
