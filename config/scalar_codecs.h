#pragma once

// Codecs of single values. Each function returns an immutable codec that any thread may share.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <span>

#include "config/codec.h"
#include "config/units.h"

namespace troupe::config {

// `true` or `false`.
CodecOf<bool> boolean();

// Text of at most 4096 bytes without control characters. `pattern`: an ECMAScript regular
// expression the whole text must match (no back-references); `what` says the same in words.
CodecOf<std::string> text(std::string what = "text", std::string pattern = "");

// A pattern for text(): a port's number, 0 to 65535.
inline constexpr const char* kPortPattern =
    "([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";

// HOST:PORT, such as 127.0.0.1:0; with `or_none` also the word `none`.
CodecOf<std::string> host_and_port(bool or_none = false);

// One path, made absolute (Reader::resolve).
CodecOf<std::string> path(std::string what = "path");
// The same for one that may be a pattern (Reader::resolve_pattern).
CodecOf<std::string> path_or_pattern(std::string what);

// "500ms", "2s", ...: units.h. Less than `least` is refused.
CodecOf<runtime::Duration> duration(runtime::Duration least);
// "1MiB", "4096", ...: units.h. For std::int64_t and std::uint64_t.
template <std::integral T>
CodecOf<T> byte_size(T least);
// "100Mbit", "10Gbit", ...: units.h. Less than `least` is refused.
CodecOf<std::int64_t> rate(std::int64_t least);
// "1 epoch", "50 iterations" or "none".
CodecOf<Every> every();

// A word of an enumeration.
template <class E>
struct Word {
  std::string word;
  E value;
};

// The index of the value among type.words, or nothing after reporting what was meant or may be
// given.
std::optional<std::size_t> read_word(const YamlValue& value, const TypeDescription& type,
                                     Reader& reader);

// The first word is shown first, else their order means nothing. E may be std::string, for words
// that are values themselves. `later`: words that only a later version takes, or another field;
// they are refused by saying what there is, and `why_later`. Every value of E that can occur has a
// word: writing another one is a broken invariant. `name`: what the reference calls the words;
// empty: all of them.
template <class E>
CodecOf<E> word(std::vector<Word<E>> words, std::vector<std::string> later = {},
                std::string why_later = {}, std::string name = {}) {
  TypeDescription type = TypeDescription::of(TypeDescription::Kind::kWord, "");
  for (const Word<E>& each : words) type.words.push_back(each.word);
  type.name = name.empty() ? fmt::format("{}", fmt::join(type.words, " | ")) : std::move(name);
  type.later_words = std::move(later);
  type.why_later = std::move(why_later);
  return codec_of<E>(
      type,
      [type, words](const YamlValue& value, E& into, Reader& reader) {
        if (const auto index = read_word(value, type, reader)) into = words[*index].value;
      },
      [words](const E& value, Selection) {
        const auto found = std::find_if(words.begin(), words.end(),
                                        [&](const Word<E>& each) { return each.value == value; });
        CHECK(found != words.end(), "a value of an enumeration has no word");
        return YamlValue::plain(found->word);
      });
}

// Reports an unquoted scalar that is no number; false then.
bool check_number_text(const YamlValue& value, const std::string& what, Reader& reader);
// The number that is all of a scalar, in decimals; nothing for anything else.
template <class N>
std::optional<N> parse_number(std::string_view scalar) {
  if (scalar.starts_with('+')) scalar.remove_prefix(1);
  N number{};
  const char* end = scalar.data() + scalar.size();
  const auto [rest, error] = std::from_chars(scalar.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

// Whole numbers in [least, most], in decimals; 1e3 and 4.0 are none.
template <std::integral T>
CodecOf<T> integer(T least, T most = std::numeric_limits<T>::max()) {
  const bool is_open = most == std::numeric_limits<T>::max();
  TypeDescription type =
      TypeDescription::of(TypeDescription::Kind::kInteger,
                          is_open ? fmt::format("a whole number from {}", least)
                                  : fmt::format("a whole number from {} to {}", least, most));
  type.minimum = static_cast<double>(least);
  if (!is_open) type.maximum = static_cast<double>(most);
  return codec_of<T>(
      type,
      [what = type.name, least, most](const YamlValue& value, T& into, Reader& reader) {
        if (!check_number_text(value, what, reader)) return;
        const std::optional<T> number = parse_number<T>(value.scalar);
        if (!number || *number < least || *number > most) return reader.expected(value, what);
        into = *number;
      },
      [](const T& value, Selection) { return YamlValue::plain(fmt::format("{}", value)); });
}

// Numbers are computed with in single precision, where those beyond would become 0 or infinite.
inline constexpr double kLeastSize = 1e-30;
inline constexpr double kMostSize = 1e30;
// Reports a number other than 0 beyond these; false then.
bool check_size(const YamlValue& value, double number, Reader& reader);

// In infinite bounds any number that check_size passes is accepted.
struct NumberRange {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false;  // `least` itself is excluded
};

// "a number from 0 to 1", "a number above 0", with the bounds as numbers; infinite ones are left
// out.
TypeDescription number_type(const NumberRange& range);

// Numbers in a range; printed so that reading gives the same bits.
template <std::floating_point T = double>
CodecOf<T> number(NumberRange range = {}) {
  const TypeDescription type = number_type(range);
  return codec_of<T>(
      type,
      [what = type.name, range](const YamlValue& value, T& into, Reader& reader) {
        if (!check_number_text(value, what, reader)) return;
        const std::optional<double> number = parse_number<double>(value.scalar);
        const bool in_range = number && std::isfinite(*number) && *number <= range.most &&
                              (range.above_least ? *number > range.least : *number >= range.least);
        if (!in_range) return reader.expected(value, what);
        if (!check_size(value, *number, reader)) return;
        // From the text: by way of double it could be rounded twice. Its size fits a float.
        into = *parse_number<T>(value.scalar);
      },
      [](const T& value, Selection) { return YamlValue::plain(fmt::format("{}", value)); });
}
// In [least, most].
template <std::floating_point T = double>
CodecOf<T> number(double least, double most) {
  return number<T>(NumberRange{least, most, false});
}
// Above 0.
template <std::floating_point T = double>
CodecOf<T> positive() {
  return number<T>(NumberRange{.least = 0.0, .above_least = true});
}

}  // namespace troupe::config
