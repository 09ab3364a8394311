#pragma once

// Where a value of the topology came from, and what is wrong with it. Problems are collected, so
// that one look at a file finds everything that needs mending.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace troupe::config {

// A value type that any message can carry. Only texts have lines; an override is its own place.
struct Place {
  std::string source;  // a path as given, "zoo/gan3d_25.yaml" or "--set a.b=c"; empty: the default
  int line = 0;        // from 1; 0: the source has no lines
  int column = 0;      // from 1, in characters

  // "file.yaml:3:5", "--set a.b=c" or "default".
  std::string text() const;
  bool is_default() const { return source.empty(); }
  bool operator==(const Place&) const = default;
};

// One thing to mend.
struct Problem {
  Place place;
  std::string message;  // what is wrong and what would be right; no trailing newline

  // "file.yaml:3:5: message".
  std::string text() const;
  bool operator==(const Problem&) const = default;
};

// Grows while a file is read; one thread.
class Problems {
 public:
  // The same problem at the same place is kept once.
  void add(Place place, std::string message);
  bool empty() const { return problems_.empty(); }
  std::size_t size() const { return problems_.size(); }
  // By source (overrides last), line and column.
  std::vector<Problem> sorted() const;
  // All of them, one per line, the first kMostShown in full; kTopology. CHECKs that there are any.
  runtime::Error error() const;

  static constexpr std::size_t kMostShown = 100;

 private:
  std::vector<Problem> problems_;
};

// `text` without line breaks and control characters and cut to `most` bytes, for messages.
std::string shown(std::string_view text, std::size_t most = 60);

// The end of a message about an unknown word: `; did you mean "filters"?`, or `; known here: a, b`.
std::string suggestion(std::string_view word, std::span<const std::string> known);

}  // namespace troupe::config
