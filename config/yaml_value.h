#pragma once

// A YAML document as plain data in which every value knows its place. The tree is what overrides
// are applied to, what options are read from and what they are written to.

#include <string>
#include <string_view>
#include <vector>

#include "config/place.h"

namespace troupe::config {

struct YamlMember;

// A value type: copies are deep. Which members are filled depends on the kind; aliases are replaced
// by copies of what they name, and tags do not occur.
struct YamlValue {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  bool quoted = false;              // scalars: written in quotes, and so always text
  std::string scalar;               // scalars
  std::vector<YamlValue> items;     // lists
  std::vector<YamlMember> members;  // maps: in the order of the file, keys unique
  Place place;

  static YamlValue text(std::string text);     // printed in quotes where it could be misread
  static YamlValue plain(std::string scalar);  // a number, a word, true or false
  // Empty ones, without a place.
  static YamlValue list();
  static YamlValue map();

  bool is_null() const { return kind == Kind::kNull; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }

  // In a map: the value of a key, null when there is none (or this is no map).
  const YamlValue* find(std::string_view key) const;
  YamlValue* find(std::string_view key);
  // To a map: appends; the key must be new.
  YamlValue& add(std::string key, YamlValue value);

  // For messages: `text "abc"`, `the number 3`, `a list`, `a section`, `nothing`.
  std::string found() const;
};

// One key of a map and its value.
struct YamlMember {
  std::string key;
  Place key_place;
  YamlValue value;
};

// Limits of a document, so that a hostile one costs little.
inline constexpr std::size_t kMostYamlBytes = 1 << 20;
inline constexpr int kMostYamlDepth = 40;
inline constexpr std::size_t kMostYamlValues = 50'000;  // aliases count as what they stand for

// That a text has more than kMostYamlBytes.
Problem too_large_text(const std::string& source);

// The one document in `text`; `source` names it in every place. Adds to `problems` (not UTF-8,
// syntax, duplicate keys, tags, a second document, beyond a limit) and returns what could be read;
// an empty document is null. Never throws.
YamlValue parse_yaml(std::string_view text, const std::string& source, Problems& problems);

// Sections in block style, lists of scalars and the members of list items on one line. `comments`
// appends where each value came from. parse_yaml of the result gives the same tree.
std::string print_yaml(const YamlValue& value, bool comments = false);
// All of it on one line, without a line break.
std::string flow_yaml(const YamlValue& value);

// `overlay` laid over `base`: maps are merged member by member and stand where the overlay's stood,
// anything else is replaced.
YamlValue merge(YamlValue base, const YamlValue& overlay);

}  // namespace troupe::config
