#pragma once

// Codecs of single values. Each function returns an immutable codec that any thread may share.

#include <fmt/format.h>

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

// The part of a word codec that needs no type: indices into `words`.
class WordTable {
 public:
  // `later`: words that only a later version takes; they are refused by saying what there is now,
  // and `why` if that is given.
  WordTable(std::vector<std::string> words, std::vector<std::string> later, std::string why);
  // The index of the word, or nothing after reporting what was meant or may be given.
  std::optional<std::size_t> read(const YamlValue& value, Reader& reader) const;
  const std::string& word(std::size_t index) const { return words_[index]; }
  TypeDescription describe() const;

 private:
  std::vector<std::string> words_;
  std::vector<std::string> later_;
  std::string why_later_;
};

// Every value of E that can occur has a word: writing another one is a broken invariant.
template <class E>
class WordCodec final : public Codec<E> {
 public:
  WordCodec(std::vector<Word<E>> words, std::vector<std::string> later, std::string why_later)
      : words_(std::move(words)), table_(texts(words_), std::move(later), std::move(why_later)) {}

  void read(const YamlValue& value, E& into, Reader& reader) const override {
    if (const auto index = table_.read(value, reader)) into = words_[*index].value;
  }
  YamlValue write(const E& value, Selection) const override {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i].value == value) return YamlValue::plain(table_.word(i));
    }
    CHECK(false, "a value of an enumeration has no word");
    return {};
  }
  TypeDescription describe() const override { return table_.describe(); }

 private:
  static std::vector<std::string> texts(const std::vector<Word<E>>& words) {
    std::vector<std::string> texts;
    for (const Word<E>& word : words) texts.push_back(word.word);
    return texts;
  }

  std::vector<Word<E>> words_;
  WordTable table_;
};

// The first word is shown first, else their order means nothing. E may be std::string, for words
// that are values themselves.
template <class E>
CodecOf<E> word(std::vector<Word<E>> words, std::vector<std::string> later = {},
                std::string why_later = {}) {
  return std::make_shared<WordCodec<E>>(std::move(words), std::move(later), std::move(why_later));
}

// Reports an unquoted scalar that is no number; false then.
bool check_number_text(const YamlValue& value, const std::string& what, Reader& reader);
// "a number from 0 to 1", "a number above 0"; infinite bounds are left out.
std::string range_text(const std::string& noun, double least, double most, bool above_least);

// Whole numbers in [least, most], in decimals; 1e3 and 4.0 are none.
template <std::integral T>
class IntegerCodec final : public Codec<T> {
 public:
  IntegerCodec(T least, T most) : least_(least), most_(most) {}

  void read(const YamlValue& value, T& into, Reader& reader) const override {
    const std::string what = text();
    if (!check_number_text(value, what, reader)) return;
    const std::string& scalar = value.scalar;
    const char* begin = scalar.data() + (scalar.starts_with('+') ? 1 : 0);
    const char* end = scalar.data() + scalar.size();
    T number{};
    const auto [rest, error] = std::from_chars(begin, end, number);
    if (error != std::errc() || rest != end || number < least_ || number > most_) {
      return reader.expected(value, what);
    }
    into = number;
  }
  YamlValue write(const T& value, Selection) const override {
    return YamlValue::plain(fmt::format("{}", value));
  }
  TypeDescription describe() const override {
    TypeDescription type = TypeDescription::of(TypeDescription::Kind::kInteger, text());
    type.minimum = static_cast<double>(least_);
    if (most_ != std::numeric_limits<T>::max()) type.maximum = static_cast<double>(most_);
    return type;
  }

 private:
  std::string text() const {
    const bool open = most_ == std::numeric_limits<T>::max();
    return open ? fmt::format("a whole number from {}", least_)
                : fmt::format("a whole number from {} to {}", least_, most_);
  }

  T least_;
  T most_;
};

template <std::integral T>
CodecOf<T> integer(T least, T most = std::numeric_limits<T>::max()) {
  return std::make_shared<IntegerCodec<T>>(least, most);
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

// Numbers in a range; printed so that reading gives the same bits.
template <std::floating_point T>
class NumberCodec final : public Codec<T> {
 public:
  explicit NumberCodec(NumberRange range) : range_(range) {}

  void read(const YamlValue& value, T& into, Reader& reader) const override {
    const std::string what = text();
    if (!check_number_text(value, what, reader)) return;
    const std::string& scalar = value.scalar;
    const char* begin = scalar.data() + (scalar.starts_with('+') ? 1 : 0);
    const char* end = scalar.data() + scalar.size();
    double number{};
    const auto [rest, error] = std::from_chars(begin, end, number);
    const bool in_range = number <= range_.most &&
                          (range_.above_least ? number > range_.least : number >= range_.least);
    if (error != std::errc() || rest != end || !std::isfinite(number) || !in_range) {
      return reader.expected(value, what);
    }
    if (!check_size(value, number, reader)) return;
    // From the text: by way of double it could be rounded twice.
    std::from_chars(begin, end, into);
  }
  YamlValue write(const T& value, Selection) const override {
    return YamlValue::plain(fmt::format("{}", value));
  }
  TypeDescription describe() const override {
    TypeDescription type = TypeDescription::of(TypeDescription::Kind::kNumber, text());
    if (std::isfinite(range_.least)) type.minimum = range_.least;
    if (std::isfinite(range_.most)) type.maximum = range_.most;
    type.above_minimum = range_.above_least;
    return type;
  }

 private:
  std::string text() const {
    return range_text("a number", range_.least, range_.most, range_.above_least);
  }

  NumberRange range_;
};

template <std::floating_point T = double>
CodecOf<T> number(NumberRange range = {}) {
  return std::make_shared<NumberCodec<T>>(range);
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
