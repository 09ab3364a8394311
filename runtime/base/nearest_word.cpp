#include "runtime/base/nearest_word.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace troupe::runtime {
namespace {

// Longer texts are no mistyped words, so the quadratic search is skipped for them.
constexpr std::size_t kLongestWord = 64;

char folded(char c) {
  return c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t columns = b.size() + 1;
  std::vector<int> before_last(columns), last(columns), row(columns);
  for (std::size_t j = 0; j < columns; ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j < columns; ++j) {
      const char from = folded(a[i - 1]), to = folded(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (from == to ? 0 : 1)});
      if (i > 1 && j > 1 && from == folded(b[j - 2]) && folded(a[i - 2]) == to) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row.back();
}

std::string nearest_word(std::string_view word, std::span<const std::string> known) {
  if (word.empty() || word.size() > kLongestWord) return {};
  std::string best;
  int best_distance = 0;
  for (const std::string& candidate : known) {
    const int distance = edit_distance(word, candidate);
    const int allowed = std::max(1, static_cast<int>(std::max(word.size(), candidate.size())) / 3);
    if (distance <= allowed && (best.empty() || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace troupe::runtime
