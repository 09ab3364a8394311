#include "config/scalar_codecs.h"

#include <algorithm>
#include <regex>

#include "runtime/base/nearest_word.h"
#include "runtime/base/remote_path.h"
#include "runtime/base/utf8.h"

namespace troupe::config {
namespace {

constexpr std::size_t kLongestText = 4096;

class BooleanCodec final : public Codec<bool> {
 public:
  void read(const YamlValue& value, bool& into, Reader& reader) const override {
    const bool known = value.scalar == "true" || value.scalar == "false";
    if (!value.is_scalar() || value.quoted || !known) {
      return reader.expected(value, "true or false");
    }
    into = value.scalar == "true";
  }
  YamlValue write(const bool& value, Selection) const override {
    return YamlValue::plain(value ? "true" : "false");
  }
  TypeDescription describe() const override {
    return TypeDescription::of(TypeDescription::Kind::kBoolean, "true or false");
  }
};

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

class TextCodec final : public Codec<std::string> {
 public:
  TextCodec(std::string what, std::string pattern)
      : what_(std::move(what)), pattern_(std::move(pattern)), expression_(pattern_) {}

  void read(const YamlValue& value, std::string& into, Reader& reader) const override {
    if (!check_text(value, what_, reader)) return;
    // std::regex recurses once per character.
    const bool matches = pattern_.empty() ||
                         (value.scalar.size() < 512 && std::regex_match(value.scalar, expression_));
    if (!matches) return reader.expected(value, what_);
    into = value.scalar;
  }
  YamlValue write(const std::string& value, Selection) const override {
    return value.empty() ? YamlValue{} : YamlValue::text(value);
  }
  TypeDescription describe() const override {
    TypeDescription type = TypeDescription::of(TypeDescription::Kind::kText, what_);
    if (!pattern_.empty()) type.pattern = "^(" + pattern_ + ")$";
    return type;
  }

 private:
  std::string what_;
  std::string pattern_;
  std::regex expression_;
};

class PathCodec final : public Codec<std::string> {
 public:
  PathCodec(std::string what, bool or_pattern) : what_(std::move(what)), or_pattern_(or_pattern) {}

  void read(const YamlValue& value, std::string& into, Reader& reader) const override {
    if (!check_text(value, what_, reader)) return;
    if (runtime::is_remote(value.scalar)) {
      return reader.problem(value.place, runtime::remote_refused(value.scalar));
    }
    into = or_pattern_ ? reader.resolve_pattern(value.scalar, value.place)
                       : reader.resolve(value.scalar, value.place);
  }
  YamlValue write(const std::string& value, Selection) const override {
    return value.empty() ? YamlValue{} : YamlValue::text(value);
  }
  TypeDescription describe() const override {
    return TypeDescription::of(TypeDescription::Kind::kText, what_);
  }

 private:
  std::string what_;
  bool or_pattern_;
};

// Values written as one scalar that a pair of functions parses and prints.
template <class T>
class QuantityCodec final : public Codec<T> {
 public:
  using Parse = std::optional<T> (*)(std::string_view);
  using Print = std::string (*)(T);
  QuantityCodec(std::string what, std::string pattern, T least, Parse parse, Print print)
      : what_(std::move(what)),
        pattern_(std::move(pattern)),
        least_(least),
        parse_(parse),
        print_(print) {}

  void read(const YamlValue& value, T& into, Reader& reader) const override {
    const std::optional<T> quantity = value.is_scalar() ? parse_(value.scalar) : std::optional<T>();
    if (!quantity) return reader.expected(value, what_);
    if (*quantity < least_) {
      return reader.problem(value.place, fmt::format("must be at least {}, found {}",
                                                     print_(least_), print_(*quantity)));
    }
    into = *quantity;
  }
  YamlValue write(const T& value, Selection) const override {
    return YamlValue::plain(print_(value));
  }
  TypeDescription describe() const override {
    TypeDescription type = TypeDescription::of(TypeDescription::Kind::kText, what_);
    type.pattern = pattern_;
    return type;
  }

 private:
  std::string what_;
  std::string pattern_;
  T least_;
  Parse parse_;
  Print print_;
};

class EveryCodec final : public Codec<Every> {
 public:
  void read(const YamlValue& value, Every& into, Reader& reader) const override {
    const auto every = value.is_scalar() ? parse_every(value.scalar) : std::optional<Every>();
    if (!every) return reader.expected(value, kWhat);
    into = *every;
  }
  YamlValue write(const Every& value, Selection) const override {
    return YamlValue::plain(print_every(value));
  }
  TypeDescription describe() const override {
    TypeDescription type = TypeDescription::of(TypeDescription::Kind::kText, kWhat);
    type.pattern = "^(none|[1-9][0-9]* *(epochs?|iterations?))$";
    return type;
  }

 private:
  static constexpr const char* kWhat = "\"1 epoch\", \"50 iterations\" or none";
};

}  // namespace

CodecOf<bool> boolean() { return std::make_shared<BooleanCodec>(); }

CodecOf<std::string> text(std::string what, std::string pattern) {
  return std::make_shared<TextCodec>(std::move(what), std::move(pattern));
}

CodecOf<std::string> host_and_port(bool or_none) {
  const std::string what = "HOST:PORT such as 127.0.0.1:0 with a port of at most 65535";
  const std::string pattern =
      R"(([A-Za-z0-9_.-]{1,253}|\*|\[[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9_.-]{1,15})?\]):)" +
      std::string(kPortPattern);
  return or_none ? text(what + ", or none", pattern + "|none") : text(what, pattern);
}

CodecOf<std::string> path(std::string what) {
  return std::make_shared<PathCodec>(std::move(what), false);
}

CodecOf<std::string> path_or_pattern(std::string what) {
  return std::make_shared<PathCodec>(std::move(what), true);
}

CodecOf<runtime::Duration> duration(runtime::Duration least) {
  return std::make_shared<QuantityCodec<runtime::Duration>>("a duration such as 500ms, 2s or 10min",
                                                            "^[0-9]+ *(ns|us|ms|s|min|h)$", least,
                                                            parse_duration, print_duration);
}

template <std::integral T>
CodecOf<T> byte_size(T least) {
  const auto parse = [](std::string_view text) -> std::optional<T> { return parse_bytes(text); };
  const auto print = [](T bytes) { return print_bytes(static_cast<std::int64_t>(bytes)); };
  return std::make_shared<QuantityCodec<T>>("a size such as 64KiB, 1MiB or 4096",
                                            "^[0-9]+ *(B|KiB|MiB|GiB)?$", least, +parse, +print);
}
template CodecOf<std::int64_t> byte_size(std::int64_t);
template CodecOf<std::uint64_t> byte_size(std::uint64_t);

CodecOf<std::int64_t> rate(std::int64_t least) {
  return std::make_shared<QuantityCodec<std::int64_t>>("bits per second such as 100Mbit or 10Gbit",
                                                       "^[0-9]+ *(bit|kbit|Mbit|Gbit)$", least,
                                                       parse_rate, print_rate);
}

CodecOf<Every> every() { return std::make_shared<EveryCodec>(); }

WordTable::WordTable(std::vector<std::string> words, std::vector<std::string> later,
                     std::string why)
    : words_(std::move(words)), later_(std::move(later)), why_later_(std::move(why)) {}

std::optional<std::size_t> WordTable::read(const YamlValue& value, Reader& reader) const {
  const std::string choice =
      fmt::format("{}{}", words_.size() == 1 ? "" : "one of ", fmt::join(words_, ", "));
  if (!value.is_scalar()) {
    reader.expected(value, choice);
    return std::nullopt;
  }
  const auto at = std::find(words_.begin(), words_.end(), value.scalar);
  if (at != words_.end()) return static_cast<std::size_t>(at - words_.begin());
  if (std::find(later_.begin(), later_.end(), value.scalar) != later_.end()) {
    reader.problem(value.place, later_word_refused(describe(), value.scalar));
    return std::nullopt;
  }
  // The only word there is need not be suggested.
  const std::string meant = words_.size() == 1 ? "" : runtime::nearest_word(value.scalar, words_);
  reader.problem(value.place,
                 fmt::format("expected {}, found {}{}", choice, value.found(),
                             meant.empty() ? "" : fmt::format("; did you mean \"{}\"?", meant)));
  return std::nullopt;
}

TypeDescription WordTable::describe() const {
  TypeDescription type = TypeDescription::of(TypeDescription::Kind::kWord,
                                             fmt::format("{}", fmt::join(words_, " | ")));
  type.words = words_;
  type.later_words = later_;
  type.why_later = why_later_;
  return type;
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

std::string range_text(const std::string& noun, double least, double most, bool above_least) {
  std::string text = noun;
  if (std::isfinite(least)) text += fmt::format(" {} {}", above_least ? "above" : "from", least);
  if (std::isfinite(most)) text += fmt::format(" {} {}", above_least ? "up to" : "to", most);
  return text;
}

}  // namespace troupe::config
