#include "main/command_line.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include <fmt/format.h>

#include "main/help.h"
#include "main/usage_hint.h"
#include "runtime/base/nearest_word.h"
#include "runtime/base/remote_path.h"
#include "runtime/base/utf8.h"
#include "telemetry/watch/page_address.h"

namespace troupe {
namespace {

// A number below zero is none.
bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9');
}

bool asks_for_help(const Arguments& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::any_of(words.begin(), end,
                     [](const std::string& word) { return word == "--help" || word == "-h"; });
}

// All of the text.
template <class T>
bool reads_as(const std::string& text, T& number) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

std::string bounds_text(const Option& option) {
  if (option.most == UINT64_MAX) return fmt::format("a whole number from {}", option.least);
  return fmt::format("a whole number from {} to {}", option.least, option.most);
}

// The fault of a path; empty: none that could be seen without looking.
std::string wrong_path(const std::string& path) {
  return runtime::is_remote(path) ? runtime::remote_refused(path) : "";
}

// The same of a run, which a page's address stands for as well.
std::string wrong_run(const std::string& run) {
  if (telemetry::looks_like_address(run)) return "";
  if (runtime::is_remote(run) && runtime::path_of_file(run).empty()) {
    return fmt::format("{}: neither a folder nor the address of a page, which is http://HOST:PORT",
                       run);
  }
  return wrong_path(run);
}

std::string wrong_word(const std::string& word, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return "";
  const std::string meant = runtime::nearest_word(word, known);
  return fmt::format("one of {}, not {}{}", fmt::join(known, ", "), word,
                     meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
}

// The fault of the word in that place; empty: none.
std::string wrong_place(const Place& place, const std::string& word) {
  if (word.empty()) return fmt::format("an empty word where {} belongs", shown_name(place));
  if (place.takes == Takes::kWord) return wrong_word(word, place.words);
  if (place.takes == Takes::kRun) return wrong_run(word);
  return place.takes == Takes::kText ? "" : wrong_path(word);
}

// The fault of the option's value; empty: none.
std::string wrong_value(const Option& option, const std::string& value) {
  if (value.empty()) return "needs a value that is not empty";
  std::uint64_t whole = 0;
  double number = 0.0;
  switch (option.takes) {
    case Takes::kWhole:
      if (reads_as(value, whole) && whole >= option.least && whole <= option.most) return "";
      return fmt::format("{}, not {}", bounds_text(option), value);
    case Takes::kNumber:
      if (reads_as(value, number) && std::isfinite(number)) return "";
      return fmt::format("a number, not {}", value);
    case Takes::kWord:
      return wrong_word(value, option.words);
    case Takes::kFile:
    case Takes::kFolder:
      return wrong_path(value);
    default:
      return "";
  }
}

}  // namespace

std::optional<int> CommandLine::parse(const Arguments& words) {
  if (asks_for_help(words)) {
    std::cout << help_of(command_);
    return 0;
  }
  if (const std::string wrong = read(words); !wrong.empty()) return usage_error(wrong);
  return std::nullopt;
}

// Presets come last: an option that was given has its own value by then.
std::string CommandLine::read(const Arguments& words) {
  bool places_only = false;
  for (std::size_t at = 0; at < words.size(); ++at) {
    if (!places_only && words[at] == "--") {
      places_only = true;
      continue;
    }
    const bool option = !places_only && is_option(words[at]);
    const std::string wrong = option ? read_option(words, at) : read_place(words, at);
    if (!wrong.empty()) return wrong;
  }
  for (const Option& option : command_.options) {
    if (!option.preset.empty() && values_[option.name].empty()) {
      values_[option.name] = {option.preset};
    }
  }
  return find_missing();
}

// Leaves `at` at the last word it has read.
std::string CommandLine::read_option(const Arguments& words, std::size_t& at) {
  const std::string& word = words[at];
  const std::size_t equals = word.find('=');
  const bool has_next = at + 1 < words.size() && !words[at + 1].starts_with("--");
  const std::string next = has_next ? words[at + 1] : "";
  const Option* option =
      word.starts_with("--") ? find_option(command_, word.substr(2, equals - 2)) : nullptr;
  if (option == nullptr) return unknown_option(command_, word, next);
  const std::string shown = fmt::format("--{}", option->name);
  if (option->takes == Takes::kNothing) {
    if (equals != std::string::npos) return fmt::format("{} takes no value", shown);
    values_[option->name] = {};
    return "";
  }
  if (equals == std::string::npos && !has_next) {
    return fmt::format("{} needs a value: {} {}", shown, shown, option->value);
  }
  const std::string value = equals == std::string::npos ? words[++at] : word.substr(equals + 1);
  if (const std::string wrong = wrong_value(*option, value); !wrong.empty()) {
    return fmt::format("{}: {}", shown, wrong);
  }
  if (option->takes == Takes::kSetting) {
    const std::string behind = at + 1 < words.size() ? words[at + 1] : "";
    if (value.find('=') == std::string::npos) return setting_without_equals(value, behind);
    // A pattern that the shell has spread, or a list with spaces in it, leaves words behind its
    // setting. If there are too many words in the end, this one is the likely cause.
    if (!behind.empty() && !is_option(behind) && !names_topology(behind)) behind_setting_ = at + 1;
  }
  auto& values = values_[option->name];
  if (!values.empty() && !option->repeats) return fmt::format("{} is given twice", shown);
  values.push_back(value);
  return "";
}

std::string CommandLine::read_place(const Arguments& words, std::size_t at) {
  const std::string& word = words[at];
  if (find_option(command_, "set") != nullptr) {
    const std::string hint = stray_setting(word, at > 0 ? words[at - 1] : "");
    if (!hint.empty()) return hint;
  }
  if (places_taken_ == command_.places.size()) {
    if (behind_setting_)
      return word_behind_setting(words[*behind_setting_ - 1], words[*behind_setting_]);
    return surplus_word(command_, word);
  }
  const Place& place = command_.places[places_taken_];
  if (const std::string wrong = wrong_place(place, word); !wrong.empty()) return wrong;
  values_[place.name].push_back(word);
  if (!place.repeats) ++places_taken_;
  return "";
}

std::string CommandLine::find_missing() const {
  for (const Place& place : command_.places) {
    if (!place.asked.empty() && !has(place.name)) return place.asked;
  }
  return "";
}

int CommandLine::usage_error(const std::string& what) const {
  note_failure(what);
  std::cerr << fmt::format("troupe {}: {}\ntry: troupe {} --help\n", command_.name,
                           runtime::printable(what), command_.name);
  return runtime::exit_code(runtime::ErrorKind::kUsage);
}

const std::vector<std::string>& CommandLine::values(const std::string& name) const {
  const auto found = values_.find(name);
  CHECK(found != values_.end() && !found->second.empty(), name);
  return found->second;
}

}  // namespace troupe
