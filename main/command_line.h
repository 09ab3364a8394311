#pragma once

// The words behind a verb, read by its table (command.h).

#include <charconv>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "main/answer.h"
#include "main/command.h"
#include "runtime/base/error.h"

namespace troupe {

// One thread. Options and places are asked for by their names.
class CommandLine {
 public:
  // The command outlives this.
  explicit CommandLine(const Command& command) : command_(command) {}

  // An exit code when there is nothing to carry out: 0 after --help (printed), 2 after an error
  // (printed and noted). Otherwise every value is of the kind that the table says.
  std::optional<int> parse(const Arguments& words);

  // Whether it was given, or has a preset.
  bool has(const std::string& name) const { return values_.count(name) > 0; }
  // A number, text, all values of what repeats as std::vector<std::string>, or whether a flag was
  // given. CHECKs that has(name), but for flags.
  template <class T>
  T get(const std::string& name) const;
  // Sets `into` to it where has(name); else leaves it as it is.
  template <class T>
  void take(const std::string& name, T& into) const;

  // Prints "troupe VERB: what" and a pointer to --help, notes what; returns 2.
  int usage_error(const std::string& what) const;

 private:
  // Each returns what is wrong; empty: nothing.
  std::string read(const Arguments& words);
  std::string read_option(const Arguments& words, std::size_t& at);
  std::string read_place(const Arguments& words, std::size_t at);
  std::string find_missing() const;

  const std::vector<std::string>& values(const std::string& name) const;

  const Command& command_;
  std::map<std::string, std::vector<std::string>> values_;
  std::size_t places_taken_ = 0;
  // The first word without an option that stood directly behind a setting.
  std::optional<std::size_t> behind_setting_;
};

template <class T>
void CommandLine::take(const std::string& name, T& into) const {
  if (!has(name)) return;
  if constexpr (requires { typename T::value_type; } && !std::same_as<T, std::string> &&
                !std::same_as<T, std::vector<std::string>>) {
    into = get<typename T::value_type>(name);
  } else {
    into = get<T>(name);
  }
}

template <class T>
T CommandLine::get(const std::string& name) const {
  if constexpr (std::same_as<T, bool>) {
    return has(name);
  } else if constexpr (std::same_as<T, std::vector<std::string>>) {
    return values(name);
  } else if constexpr (std::same_as<T, std::string>) {
    return values(name).back();
  } else {
    static_assert(std::is_arithmetic_v<T>);
    const std::string& text = values(name).back();
    T number{};
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    CHECK(read.ec == std::errc(), name);
    return number;
  }
}

}  // namespace troupe
