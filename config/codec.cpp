#include "config/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "config/field_search.h"
#include "config/shipped.h"
#include "runtime/base/nearest_word.h"

namespace troupe::config {

namespace fs = std::filesystem;

namespace {

std::string below(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

void annotate_below(YamlValue& value, const std::string& path, const Origins& origins) {
  value.place = place_of(origins, path);
  for (YamlMember& member : value.members) {
    annotate_below(member.value, below(path, member.key), origins);
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    annotate_below(value.items[i], below(path, std::to_string(i)), origins);
  }
}

// Where a default comes from: the nearest section around it that was written.
Place nearest_place(std::string field, const Origins& origins) {
  Place place = place_of(origins, field);
  while (place.is_default() && field.find('.') != std::string::npos) {
    field.resize(field.rfind('.'));
    place = place_of(origins, field);
  }
  return place;
}

}  // namespace

Place place_of(const Origins& origins, const std::string& field) {
  const auto found = origins.find(field);
  return found == origins.end() ? Place{} : found->second;
}

Problem problem_of(const Origins& origins, const std::string& field, const std::string& what) {
  return {place_of(origins, field), fmt::format("{}: {}", field, what)};
}

std::string field_to_mend(const std::vector<std::string>& fields, const Origins& origins) {
  CHECK(!fields.empty());
  const auto first = [&](auto&& suits) {
    return std::find_if(fields.begin(), fields.end(), [&](const std::string& field) {
      const Place place = place_of(origins, field);
      return !place.is_default() && !is_from_zoo(place) && suits(place);
    });
  };
  auto found = first([](const Place& place) { return place.line == 0; });
  if (found == fields.end()) found = first([](const Place&) { return true; });
  return found == fields.end() ? fields.front() : *found;
}

bool selects(Selection selection, Scope scope) {
  switch (selection) {
    case Selection::kAll:
      return true;
    case Selection::kKept:
      return scope != Scope::kFree;
    case Selection::kState:
      return scope == Scope::kState;
  }
  return true;
}

Reader::Reader(Problems& problems, Origins& origins, std::string folder)
    : problems_(problems), origins_(origins), folder_(std::move(folder)) {}

Reader::Step::Step(Reader& reader, std::string_view name)
    : reader_(reader), length_(reader.path_.size()) {
  reader_.path_ = below(reader_.path_, name);
}

Reader::Step::~Step() { reader_.path_.resize(length_); }

void Reader::problem(const Place& place, std::string_view message) {
  problem_at(path_, place, message);
}

void Reader::problem_at(const std::string& path, const Place& place, std::string_view message) {
  problems_.add(place, path.empty() ? std::string(message) : fmt::format("{}: {}", path, message));
  if (paths_with_problems_.empty() || paths_with_problems_.back() != path) {
    paths_with_problems_.push_back(path);
  }
}

void Reader::problem_at(const std::string& path, std::string_view message) {
  problem_at(path, origin(path), message);
}

void Reader::broken_rule(const std::vector<std::string>& fields, std::string_view message) {
  const std::string field = field_to_mend(fields, origins_);
  problem_at(field, nearest_place(field, origins_), message);
}

void Reader::expected(const YamlValue& value, std::string_view what) {
  problem(value.place, fmt::format("expected {}, found {}", what, value.found()));
}

void Reader::unknown_key(const YamlMember& member, std::span<const std::string> known) {
  std::string meant = suggestion(member.key, known);
  // A key of another section. Nobody reads what a hostile file has beyond those that are shown.
  const bool is_near = !runtime::nearest_word(member.key, known).empty();
  if (!is_near && problems_.size() < Problems::kMostShown) {
    std::vector<std::string> elsewhere = fields_named(member.key);
    if (elsewhere.empty()) elsewhere = fields_near(member.key);
    if (!elsewhere.empty()) {
      meant = fmt::format("; did you mean {}?", fmt::join(elsewhere, " or "));
    }
  }
  problem(member.key_place, fmt::format("unknown key \"{}\"{}", shown(member.key), meant));
}

void Reader::remember(const Place& place) { origins_[path_] = place; }

void Reader::forget_item(const std::string& list, std::size_t index) {
  const std::string prefix = list + ".";
  Origins moved;
  for (auto& [path, place] : origins_) {
    std::size_t item = 0;
    const char* digits = path.data() + std::min(prefix.size(), path.size());
    const auto [rest, error] = std::from_chars(digits, path.data() + path.size(), item);
    if (!path.starts_with(prefix) || error != std::errc() || item < index) {
      moved.emplace(path, std::move(place));
    } else if (item > index) {
      moved.emplace(prefix + std::to_string(item - 1) + rest, std::move(place));
    }
  }
  origins_ = std::move(moved);
}

bool Reader::has_problem_below(std::string_view path) const {
  return std::any_of(
      paths_with_problems_.begin(), paths_with_problems_.end(), [&](const std::string& bad) {
        return bad.starts_with(path) && (bad.size() == path.size() || bad[path.size()] == '.');
      });
}

std::string Reader::folder_of(const Place& place, std::error_code& error) const {
  // An override has no lines; a file named without a folder lies in the current one.
  const bool from_here = place.line == 0 || folder_.empty();
  return from_here ? fs::current_path(error).string() : fs::absolute(folder_, error).string();
}

std::string Reader::resolve(const std::string& path, const Place& place) const {
  std::error_code error;
  const fs::path base = folder_of(place, error);
  if (error || path.empty()) return path;
  return (base / path).lexically_normal().string();
}

std::string Reader::resolve_pattern(const std::string& pattern, const Place& place) const {
  if (pattern.find_first_of("*?[") == std::string::npos) return resolve(pattern, place);
  std::error_code error;
  std::string base;
  for (const char c : folder_of(place, error)) {
    const bool in_brackets = c == '*' || c == '?' || c == '[';
    if (in_brackets) base += '[';
    if (c == '\\') base += '\\';
    base += c;
    if (in_brackets) base += ']';
  }
  if (error) return pattern;
  return (fs::path(base) / pattern).lexically_normal().string();
}

TypeDescription TypeDescription::of(Kind kind, std::string name) {
  TypeDescription type;
  type.kind = kind;
  type.name = std::move(name);
  return type;
}

std::string later_word_refused(const TypeDescription& type, std::string_view word) {
  return fmt::format("only {} {} available {}, not {}{}{}", fmt::join(type.words, ", "),
                     type.words.size() == 1 ? "is" : "are",
                     type.why_later.empty() ? "in this version" : "here", word,
                     type.why_later.empty() ? "" : ": ", type.why_later);
}

void annotate(YamlValue& tree, const Origins& origins) { annotate_below(tree, "", origins); }

}  // namespace troupe::config
