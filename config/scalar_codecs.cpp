#include "config/scalar_codecs.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <regex>

#include "runtime/base/nearest_word.h"
#include "runtime/base/remote_path.h"
#include "runtime/base/utf8.h"

namespace troupe::config {
namespace {

constexpr std::size_t kLongestText = 4096;

// The file has none, but quoted text may spell it: "\e", "\u202E".
bool check_characters(const YamlValue& value, Reader& reader) {
  for (std::string_view rest = value.scalar; !rest.empty();) {
    const std::string_view character =
        rest.substr(0, std::max<std::size_t>(runtime::utf8_length(rest), 1));
    if (runtime::is_hidden(character)) {
      reader.problem(value.place, runtime::hidden_name(character) + " is taken in no text");
      return false;
    }
    rest.remove_prefix(character.size());
  }
  return true;
}

bool check_text(const YamlValue& value, const std::string& what, Reader& reader) {
  if (!value.is_scalar() || value.scalar.empty()) {
    reader.expected(value, what);
    return false;
  }
  if (!check_characters(value, reader)) return false;
  if (value.scalar.size() > kLongestText) {
    reader.problem(value.place, fmt::format("longer than {} bytes", kLongestText));
    return false;
  }
  return true;
}

YamlValue write_text(const std::string& value, Selection) {
  return value.empty() ? YamlValue{} : YamlValue::text(value);
}

TypeDescription text_type(std::string what, std::string pattern) {
  TypeDescription type = TypeDescription::of(TypeDescription::Kind::kText, std::move(what));
  type.pattern = std::move(pattern);
  return type;
}

using Resolve = std::string (Reader::*)(const std::string&, const Place&) const;

CodecOf<std::string> path_codec(std::string what, Resolve resolve) {
  return codec_of<std::string>(
      text_type(what, ""),
      [what, resolve](const YamlValue& value, std::string& into, Reader& reader) {
        if (!check_text(value, what, reader)) return;
        if (runtime::is_remote(value.scalar)) {
          return reader.problem(value.place, runtime::remote_refused(value.scalar));
        }
        into = (reader.*resolve)(value.scalar, value.place);
      },
      write_text);
}

// A codec of texts that `parse` gives a value of and `print` gives back.
template <class T, class Parse, class Print>
CodecOf<T> parsed(const std::string& what, std::string pattern, Parse parse, Print print,
                  std::optional<T> least = std::nullopt) {
  return codec_of<T>(
      text_type(what, std::move(pattern)),
      [=](const YamlValue& value, T& into, Reader& reader) {
        const std::optional<T> read = value.is_scalar() ? parse(value.scalar) : std::optional<T>();
        if (!read) return reader.expected(value, what);
        if constexpr (std::totally_ordered<T>) {
          if (least && *read < *least) {
            return reader.problem(value.place, fmt::format("must be at least {}, found {}",
                                                           print(*least), print(*read)));
          }
        }
        into = *read;
      },
      [print](const T& value, Selection) { return YamlValue::plain(print(value)); });
}

// The expression of a pattern, compiled when the first value is held against it: that takes a tenth
// of a millisecond, and a program that starts has a hundred patterns and asks few of them.
const std::regex& compiled(const std::string& pattern) {
  static std::mutex guard;
  static std::map<std::string, std::regex> known;
  const std::scoped_lock lock(guard);
  const auto found = known.find(pattern);
  return found != known.end() ? found->second
                              : known.emplace(pattern, std::regex(pattern)).first->second;
}

}  // namespace

CodecOf<bool> boolean() {
  constexpr const char* kWhat = "true or false";
  return codec_of<bool>(
      TypeDescription::of(TypeDescription::Kind::kBoolean, kWhat),
      [](const YamlValue& value, bool& into, Reader& reader) {
        const bool is_known = value.scalar == "true" || value.scalar == "false";
        if (!value.is_scalar() || value.quoted || !is_known) return reader.expected(value, kWhat);
        into = value.scalar == "true";
      },
      [](const bool& value, Selection) { return YamlValue::plain(value ? "true" : "false"); });
}

CodecOf<std::string> text(std::string what, std::string pattern) {
  return codec_of<std::string>(
      text_type(what, pattern.empty() ? "" : "^(" + pattern + ")$"),
      [what, pattern](const YamlValue& value, std::string& into, Reader& reader) {
        if (!check_text(value, what, reader)) return;
        // std::regex recurses once per character.
        const bool matches = pattern.empty() || (value.scalar.size() < 512 &&
                                                 std::regex_match(value.scalar, compiled(pattern)));
        if (!matches) return reader.expected(value, what);
        into = value.scalar;
      },
      write_text);
}

CodecOf<std::string> host_and_port(bool or_none) {
  const std::string what = "HOST:PORT such as 127.0.0.1:0 with a port of at most 65535";
  const std::string pattern =
      R"(([A-Za-z0-9_.-]{1,253}|\*|\[[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9_.-]{1,15})?\]):)" +
      std::string(kPortPattern);
  return or_none ? text(what + ", or none", pattern + "|none") : text(what, pattern);
}

CodecOf<std::string> path(std::string what) {
  return path_codec(std::move(what), &Reader::resolve);
}

CodecOf<std::string> path_or_pattern(std::string what) {
  return path_codec(std::move(what), &Reader::resolve_pattern);
}

CodecOf<runtime::Duration> duration(runtime::Duration least) {
  return parsed<runtime::Duration>("a duration such as 500ms, 2s or 10min",
                                   "^[0-9]+ *(ns|us|ms|s|min|h)$", parse_duration, print_duration,
                                   least);
}

template <std::integral T>
CodecOf<T> byte_size(T least) {
  const auto parse = [](std::string_view text) -> std::optional<T> { return parse_bytes(text); };
  const auto print = [](T bytes) { return print_bytes(static_cast<std::int64_t>(bytes)); };
  return parsed<T>("a size such as 64KiB, 1MiB or 4096", "^[0-9]+ *(B|KiB|MiB|GiB)?$", parse, print,
                   least);
}
template CodecOf<std::int64_t> byte_size(std::int64_t);
template CodecOf<std::uint64_t> byte_size(std::uint64_t);

CodecOf<std::int64_t> rate(std::int64_t least) {
  return parsed<std::int64_t>("bits per second such as 100Mbit or 10Gbit",
                              "^[0-9]+ *(bit|kbit|Mbit|Gbit)$", parse_rate, print_rate, least);
}

CodecOf<Every> every() {
  return parsed<Every>("\"1 epoch\", \"50 iterations\" or none",
                       "^(none|[1-9][0-9]* *(epochs?|iterations?))$", parse_every, print_every);
}

std::optional<std::size_t> read_word(const YamlValue& value, const TypeDescription& type,
                                     Reader& reader) {
  const std::vector<std::string>& words = type.words;
  const bool has_name = type.name != fmt::format("{}", fmt::join(words, " | "));
  const std::string choice =
      has_name ? type.name
               : fmt::format("{}{}", words.size() == 1 ? "" : "one of ", fmt::join(words, ", "));
  if (!value.is_scalar()) {
    reader.expected(value, choice);
    return std::nullopt;
  }
  const auto at = std::find(words.begin(), words.end(), value.scalar);
  if (at != words.end()) return static_cast<std::size_t>(at - words.begin());
  const auto& later = type.later_words;
  if (std::find(later.begin(), later.end(), value.scalar) != later.end()) {
    reader.problem(value.place, later_word_refused(type, value.scalar));
    return std::nullopt;
  }
  // The only word there is need not be suggested.
  const std::string meant = words.size() == 1 ? "" : runtime::nearest_word(value.scalar, words);
  reader.problem(value.place,
                 fmt::format("expected {}, found {}{}", choice, value.found(),
                             meant.empty() ? "" : fmt::format("; did you mean \"{}\"?", meant)));
  return std::nullopt;
}

bool check_number_text(const YamlValue& value, const std::string& what, Reader& reader) {
  if (value.is_scalar() && !value.quoted) return true;
  reader.expected(value, value.is_scalar() ? what + " without quotes" : what);
  return false;
}

bool check_size(const YamlValue& value, double number, Reader& reader) {
  const double size = std::abs(number);
  if (size == 0.0 || (size >= kLeastSize && size <= kMostSize)) return true;
  reader.problem(
      value.place,
      fmt::format("{} is too {}: single precision computes with {} to {}", shown(value.scalar),
                  size < kLeastSize ? "small" : "large", kLeastSize, kMostSize));
  return false;
}

TypeDescription number_type(const NumberRange& range) {
  TypeDescription type = TypeDescription::of(TypeDescription::Kind::kNumber, "a number");
  type.above_minimum = range.above_least;
  if (std::isfinite(range.least)) {
    type.minimum = range.least;
    type.name += fmt::format(" {} {}", range.above_least ? "above" : "from", range.least);
  }
  if (std::isfinite(range.most)) {
    type.maximum = range.most;
    type.name += fmt::format(" {} {}", range.above_least ? "up to" : "to", range.most);
  }
  return type;
}

}  // namespace troupe::config
