#include "config/override.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace troupe::config {
namespace {

void set_places(YamlValue& value, const Place& place) {
  value.place = place;
  for (YamlValue& item : value.items) set_places(item, place);
  for (YamlMember& member : value.members) {
    member.key_place = place;
    set_places(member.value, place);
  }
}

std::optional<std::size_t> index_of(const std::string& key) {
  std::size_t index = 0;
  const auto [rest, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (error != std::errc() || rest != key.data() + key.size()) return std::nullopt;
  return index;
}

// The value one key further; null after reporting a problem.
YamlValue* enter(YamlValue& value, const std::string& key, const Override& change,
                 Problems& problems) {
  if (value.is_list()) {
    const std::optional<std::size_t> index = index_of(key);
    if (index && *index < value.items.size()) return &value.items[*index];
    if (index) {
      problems.add(change.place, value.items.empty()
                                     ? std::string("the list is empty")
                                     : fmt::format("the list has {} items, the last of them {}",
                                                   value.items.size(), value.items.size() - 1));
      return nullptr;
    }
  }
  // A value that is no section is taken for a short form. It is kept under the empty key, which
  // as_section() understands.
  if (!value.is_map()) {
    YamlValue section = YamlValue::map();
    section.place = change.place;
    if (!value.is_null()) section.members.push_back({"", value.place, std::move(value)});
    value = std::move(section);
  }
  if (YamlValue* found = value.find(key)) return found;
  YamlValue created;
  created.place = change.place;
  return &value.add(key, std::move(created));
}

}  // namespace

runtime::Result<Override> parse_override(std::string_view text, Problems& problems) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return runtime::Error{runtime::ErrorKind::kUsage,
                          fmt::format("--set {}: give it as a.b.c=value", shown(text))};
  }
  Override parsed;
  parsed.place.source = "--set " + shown(text, 80);
  std::string_view keys = text.substr(0, equals);
  while (true) {
    const std::size_t dot = keys.find('.');
    parsed.path.emplace_back(keys.substr(0, dot));
    if (parsed.path.back().empty() || parsed.path.size() > kMostYamlDepth) {
      return runtime::Error{runtime::ErrorKind::kUsage,
                            fmt::format("--set {}: a path is keys between dots, such as "
                                        "train.learning_rate.g",
                                        shown(text))};
    }
    if (dot == std::string_view::npos) break;
    keys.remove_prefix(dot + 1);
  }
  const std::string_view value = text.substr(equals + 1);
  if (value.starts_with('*')) {
    problems.add(parsed.place,
                 fmt::format("a pattern that begins with * needs two pairs of quotes, "
                             "one for the shell and one for YAML: --set '{}=\"{}\"'",
                             shown(text.substr(0, equals)), shown(value)));
    return parsed;
  }
  // Lines and columns within the value lead nowhere, so its problems and its parts get the override
  // as their place.
  Problems of_value;
  parsed.value = parse_yaml(value, "value", of_value);
  for (const Problem& problem : of_value.sorted()) {
    problems.add(parsed.place, problem.message);
  }
  set_places(parsed.value, parsed.place);
  return parsed;
}

void apply_override(YamlValue& root, const Override& change, Problems& problems) {
  YamlValue* at = &root;
  for (const std::string& key : change.path) {
    at = enter(*at, key, change, problems);
    if (at == nullptr) return;
  }
  *at = change.value;
  at->place = change.place;
}

}  // namespace troupe::config
