#pragma once

// The space that a study searches: fields of a topology, and the values that each may take.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::study {

// A setting is a word of a command line, which the system bounds, and all of them together.
inline constexpr std::size_t kLongestPath = 256;
inline constexpr std::size_t kLongestValue = std::size_t{16} << 10;

// A field that exists only where another one has one of these values.
struct Condition {
  std::string path;                 // of a choice that stands before it in the space
  std::vector<std::string> values;  // some of its values, as YAML

  bool operator==(const Condition&) const = default;
};

// One field of the topology. Exactly one of the first four is given.
struct Dimension {
  std::string path;  // of the field, as for --set
  std::optional<std::array<double, 2>> log, linear;
  std::optional<std::array<std::int64_t, 2>> integer;
  std::optional<std::vector<std::string>> choice;  // values as YAML
  std::int64_t step = 1;                           // of integer
  std::optional<Condition> only_with;

  bool operator==(const Dimension&) const = default;
};

using Space = std::vector<Dimension>;

// A value of each dimension, in their order: a number or, of a choice, the index of its value, or
// kAbsent where the dimension does not exist. Only value_at(), value_of() and their callers make
// them, so that equal values have equal bits.
using Point = std::vector<double>;
inline constexpr double kAbsent = -std::numeric_limits<double>::infinity();

// Whether a dimension exists at a point. Only the values before it are looked at.
bool exists(const Space& space, std::size_t number, const Point& point);
// The point with kAbsent where a dimension does not exist. Every other one has a value.
Point settled(const Space& space, Point point);

// How many values a dimension has; 0: it is continuous.
std::uint64_t levels(const Dimension& dimension);

// The value at a share of the dimension's way from 0 to 1. Each level has an equal share of it.
// Continuous values have six digits, so that people can write them, and keep the bounds.
double value_at(const Dimension& dimension, double share);
// Where a value, not kAbsent, stands: 0 and 1 are the bounds, and levels have equal distances. For
// a choice it is the index.
double share_of(const Dimension& dimension, double value);
// The value that stands nearest to a share, which may be beyond the bounds. Not of a choice.
double value_near(const Dimension& dimension, double share);

// The value as YAML, for --set.
std::string text_of(const Dimension& dimension, double value);
// The value of such a text; nothing: it is none that the dimension has.
std::optional<double> value_of(const Dimension& dimension, const std::string& text);

// (path, value as YAML) of each dimension that exists at the point.
using Settings = std::vector<std::pair<std::string, std::string>>;
Settings settings_of(const Space& space, const Point& point);
// Nothing: they are not those of a point of the space.
std::optional<Point> point_of(const Space& space, const Settings& settings);

}  // namespace troupe::study
