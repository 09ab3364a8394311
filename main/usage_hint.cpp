#include "main/usage_hint.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "config/field_search.h"
#include "config/shipped.h"
#include "main/help.h"
#include "runtime/base/nearest_word.h"

namespace troupe {
namespace {

std::vector<std::string> option_names(const Command& command) {
  std::vector<std::string> names;
  for (const Option& option : shown_options(command)) names.push_back(option.name);
  return names;
}

std::string as_settings(const std::vector<std::string>& fields, const std::string& value) {
  std::vector<std::string> settings;
  for (const std::string& field : fields)
    settings.push_back(fmt::format("--set {}={}", field, value));
  return fmt::format("; did you mean {}?", fmt::join(settings, " or "));
}

// Suggests the settings of a topology that the name may stand for; empty: there is none.
std::string field_hint(const std::string& name, const std::string& value) {
  std::vector<std::string> settings;
  for (const config::FieldOfWord& field : config::fields_taking(name)) {
    if (!field.refusal.empty()) return fmt::format("; {}: {}", field.path, field.refusal);
    settings.push_back(field.path);
  }
  if (!settings.empty()) return as_settings(settings, name);
  const auto near = config::fields_near(name);
  return near.empty() ? "" : as_settings(near, value);
}

// "--set" of "--set=a=b" taken off.
std::string without_option(const std::string& setting) {
  constexpr std::string_view kOption = "--set=";
  return setting.starts_with(kOption) ? setting.substr(kOption.size()) : setting;
}

// How a setting that a shell takes apart is written.
std::string in_quotes(const std::string& setting) {
  const std::string key = setting.substr(0, setting.find('='));
  return fmt::format("quotes keep a pattern in one word: --set '{}=\"*.h5\"'", key);
}

// The last word of a name: "make" of "data make".
std::string last_word(const std::string& name) { return name.substr(name.rfind(' ') + 1); }

std::vector<std::string> verbs_below(const std::string& group) {
  std::vector<std::string> names;
  for (const Command* verb : shown_verbs()) {
    if (group_of(*verb) == group) names.push_back(last_word(verb->name));
  }
  return names;
}

// The verb that was meant by the word; empty: nobody can tell. The surest guess comes first: a
// synonym, an option of the program or of a verb, and at last a verb that is written nearly so.
std::string meant_verb(const std::string& word) {
  for (const Command* verb : shown_verbs()) {
    const auto& synonyms = verb->synonyms;
    if (std::find(synonyms.begin(), synonyms.end(), word) != synonyms.end()) return verb->name;
  }
  for (const std::string& option : program_options()) {
    if (option == word) return fmt::format("--{}", option);
  }
  if (word == "man") return "manual";
  if (word == "-v" || word == "-V") return "--version";
  if (word.starts_with("--")) {
    const std::string nearest = runtime::nearest_word(word.substr(2), program_options());
    return nearest.empty() ? "" : fmt::format("--{}", nearest);
  }
  for (const Command* verb : shown_verbs()) {
    if (const Option* option = find_option(*verb, word); option != nullptr && !option->hidden) {
      const std::string value = option->value.empty() ? "" : " " + option->value;
      return fmt::format("{} --{}{}", verb->name, option->name, value);
    }
  }
  std::vector<std::string> names;
  for (const Command* verb : shown_verbs()) names.push_back(last_word(verb->name));
  const std::string nearest = runtime::nearest_word(word, names);
  for (const Command* verb : shown_verbs()) {
    if (last_word(verb->name) == nearest) return verb->name;
  }
  return "";
}

}  // namespace

std::string unknown_option(const Command& command, const std::string& word,
                           const std::string& next) {
  const std::size_t equals = word.find('=');
  const std::size_t begin = word.find_first_not_of('-');
  const std::string name = begin == std::string::npos ? "" : word.substr(begin, equals - begin);
  std::string said = fmt::format("no option {}", word.substr(0, equals));
  std::string value = equals == std::string::npos ? next : word.substr(equals + 1);
  if (value.empty() || value[0] == '-' || names_topology(value)) value = "VALUE";
  const bool sets = find_option(command, "set") != nullptr;
  // A field of the topology is meant before an option that is written nearly so.
  if (sets) {
    const auto fields = config::fields_named(name);
    if (!fields.empty()) return said + as_settings(fields, value);
  }
  for (const Command* verb : shown_verbs()) {
    if (std::ranges::count(option_names(*verb), name) == 0) continue;
    return said + fmt::format("; troupe {} has it", verb->name);
  }
  const std::string near = runtime::nearest_word(name, option_names(command));
  if (!near.empty()) return said + fmt::format("; did you mean --{}?", near);
  return sets ? said + field_hint(name, value) : said;
}

std::string surplus_word(const Command& command, const std::string& word) {
  if (command.places.empty()) return fmt::format("{}: no word belongs here", word);
  return fmt::format("{} is one word too many behind {}", word, shown_name(command.places.back()));
}

std::string setting_without_equals(const std::string& key, const std::string& next) {
  const bool is_value = !next.empty() && next[0] != '-' && !names_topology(next);
  return fmt::format("--set {0}: a setting is one word: --set {0}={1}", key,
                     is_value ? next : "VALUE");
}

std::string stray_setting(const std::string& word, const std::string& before) {
  const std::size_t equals = word.find('=');
  std::error_code ignored;
  // A file may have an equals sign in its name.
  if (equals == std::string::npos || std::filesystem::exists(word, ignored)) return "";
  const std::string key = word.substr(0, equals);
  const auto fields = config::fields_named(key);
  if (fields.empty()) return "";
  if (without_option(before).starts_with(key + "=")) {
    return fmt::format("{}: several words of one setting, as a shell makes them; {}", word,
                       in_quotes(word));
  }
  return fmt::format("{}: a setting needs its option{}", word,
                     as_settings(fields, word.substr(equals + 1)));
}

std::string word_behind_setting(const std::string& setting, const std::string& word) {
  const std::string first = without_option(setting);
  const char begin = first.back() == '=' ? ' ' : first[first.find('=') + 1];
  const bool is_list = begin == '[' || begin == '{';
  return fmt::format(
      "{} stands behind --set {}, which is one word; {}", word, first,
      is_list ? fmt::format("quotes keep it whole: --set '{} {}'", first, word) : in_quotes(first));
}

bool names_topology(const std::string& word) {
  return word.ends_with(".yaml") || word.ends_with(".yml") || config::shipped_text(word);
}

std::string unknown_verb(const Arguments& words) {
  const std::string& word = words.front();
  const std::vector<std::string> below = verbs_below(word);
  if (!below.empty()) {
    const auto but_last = std::span(below).first(below.size() - 1);
    const std::string known = fmt::format("{} and {}", fmt::join(but_last, ", "), below.back());
    if (words.size() == 1) return fmt::format("{} has the verbs {}", word, known);
    const std::string nearest = runtime::nearest_word(words[1], below);
    return fmt::format("no verb '{} {}'; {}", word, words[1],
                       nearest.empty() ? fmt::format("{} has {}", word, known)
                                       : fmt::format("did you mean troupe {} {}?", word, nearest));
  }
  const std::string meant = meant_verb(word);
  return fmt::format("no verb '{}'{}", word,
                     meant.empty() ? "" : fmt::format("; did you mean troupe {}?", meant));
}

}  // namespace troupe
