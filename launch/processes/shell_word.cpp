#include "launch/processes/shell_word.h"

#include <utility>

namespace troupe::launch {

std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:,@%=";
  const bool is_plain = !text.empty() && text.find_first_not_of(kPlain) == text.npos;
  return is_plain ? std::string(text) : quoted(text);
}

std::string command_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += shell_word(word);
  }
  return line;
}

std::optional<std::vector<std::string>> words_of_line(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool begun = false;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      if (begun) words.push_back(std::exchange(word, ""));
      begun = false;
      continue;
    }
    begun = true;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      word += line[++i];
    } else {
      word += c;
    }
  }
  if (begun) words.push_back(word);
  if (quote != 0) return std::nullopt;
  return words;
}

}  // namespace troupe::launch
