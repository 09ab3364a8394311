#include "main/command.h"

#include <algorithm>

namespace troupe {

const Option* find_option(const Command& command, const std::string& name) {
  const auto found = std::find_if(command.options.begin(), command.options.end(),
                                  [&](const Option& option) { return option.name == name; });
  return found == command.options.end() ? nullptr : &*found;
}

const std::vector<Command>& all_verbs() {
  static const std::vector<Command> kVerbs{
      run_verb(),       study_verb(),       join_verb(),         drain_verb(),      watch_verb(),
      check_verb(),     plan_verb(),        burst_verb(),        pools_verb(),      devices_verb(),
      data_make_verb(), data_info_verb(),   data_convert_verb(), data_fetch_verb(), generate_verb(),
      validate_verb(),  inspect_verb(),     export_verb(),       import_verb(),     keygen_verb(),
      token_verb(),     completions_verb(), manual_verb()};
  return kVerbs;
}

std::vector<const Command*> shown_verbs() {
  std::vector<const Command*> shown;
  for (const Command& verb : all_verbs()) {
    if (!verb.hidden) shown.push_back(&verb);
  }
  return shown;
}

const std::vector<std::string>& program_options() {
  static const std::vector<std::string> kOptions{"help", "version"};
  return kOptions;
}

std::string group_of(const Command& verb) {
  const std::size_t space = verb.name.find(' ');
  return space == std::string::npos ? std::string() : verb.name.substr(0, space);
}

}  // namespace troupe
