#include "config/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "runtime/base/nearest_word.h"
#include "runtime/base/utf8.h"

namespace troupe::config {
namespace {

bool is_override(const Place& place) { return place.source.starts_with("--set"); }

bool stands_before(const Problem& a, const Problem& b) {
  return std::make_tuple(is_override(a.place), std::string_view(a.place.source), a.place.line,
                         a.place.column) < std::make_tuple(is_override(b.place),
                                                           std::string_view(b.place.source),
                                                           b.place.line, b.place.column);
}

}  // namespace

std::string Place::text() const {
  if (is_default()) return "default";
  return line == 0 ? source : fmt::format("{}:{}:{}", source, line, column);
}

std::string Problem::text() const {
  return place.is_default() ? message : place.text() + ": " + message;
}

void Problems::add(Place place, std::string message) {
  // A hostile file may hold a problem per byte: the ones nobody will read need not be compared.
  const Problem problem{std::move(place), std::move(message)};
  const std::size_t compared = std::min(problems_.size(), kMostShown);
  const auto end = problems_.end();
  if (std::find(end - static_cast<std::ptrdiff_t>(compared), end, problem) == end) {
    problems_.push_back(problem);
  }
}

std::vector<Problem> Problems::sorted() const {
  std::vector<Problem> sorted = problems_;
  std::stable_sort(sorted.begin(), sorted.end(), stands_before);
  return sorted;
}

runtime::Error Problems::error() const {
  CHECK(!empty());
  const std::vector<Problem> all = sorted();
  std::string message;
  for (std::size_t i = 0; i < std::min(all.size(), kMostShown); ++i) {
    if (i > 0) message += '\n';
    message += all[i].text();
  }
  if (all.size() > kMostShown) {
    message += fmt::format("\nand {} more", all.size() - kMostShown);
  }
  return {runtime::ErrorKind::kTopology, std::move(message)};
}

std::string shown(std::string_view text, std::size_t most) {
  std::string result;
  const std::string_view all = text;
  while (!text.empty()) {
    // Bytes that are not UTF-8 stay as they are.
    const std::string_view character =
        text.substr(0, std::max<std::size_t>(runtime::utf8_length(text), 1));
    if (all.size() - text.size() + character.size() > most) return result + "...";
    result += runtime::is_hidden(character) ? " " : character;
    text.remove_prefix(character.size());
  }
  return result;
}

std::string suggestion(std::string_view word, std::span<const std::string> known) {
  if (const std::string meant = runtime::nearest_word(word, known); !meant.empty()) {
    return fmt::format("; did you mean \"{}\"?", meant);
  }
  if (known.empty()) return {};
  return fmt::format("; known here: {}", fmt::join(known, ", "));
}

}  // namespace troupe::config
