#pragma once

// Writes the fields of a struct (runtime/base/fields.h) as a JSON object, in their order and on one
// line. An absent value is null. No limits are looked at.

#include <cmath>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/fields.h"
#include "runtime/base/json_text.h"

namespace troupe::runtime {

class JsonWriter {
 public:
  // Appends members or items to `out`, which outlives this; the brackets are the caller's.
  explicit JsonWriter(std::string& out) : out_(out) {}

  void number(std::string_view name, std::unsigned_integral auto value, std::uint64_t = 0) {
    put(name, "{}", value);
  }
  void integer(std::string_view name, std::signed_integral auto value, std::int64_t = 0,
               std::int64_t = 0) {
    put(name, "{}", value);
  }
  void real(std::string_view name, double value, int digits = 9) {
    key(name);
    out_ += json_number(value, digits);
  }
  void moment(std::string_view name, double value) {
    if (!std::isfinite(value)) return real(name, value);
    put(name, "{:.3f}", value);
  }
  void bits(std::string_view name, std::uint64_t value) { put(name, "\"{:016x}\"", value); }
  void flag(std::string_view name, bool value) { put(name, "{}", value); }
  void text(std::string_view name, std::string_view value, std::size_t) {
    key(name);
    out_ += json_string(value);
  }
  void prose(std::string_view name, std::string_view value, std::size_t most) {
    text(name, value, most);
  }
  void converted(std::string_view name, const auto& value, std::size_t most, auto to_text, auto) {
    text(name, to_text(value), most);
  }
  template <class Struct>
  void object(std::string_view name, const Struct& value) {
    group(name, [&](JsonWriter& members) { fields(members, value); });
  }
  void list(std::string_view name, const auto& values, std::size_t most) {
    list(name, values, most, [](JsonWriter& items, const auto& value) { items.element(value); });
  }
  void list(std::string_view name, const auto& values, std::size_t, auto each) {
    tuple(name, [&](JsonWriter& items) {
      for (const auto& value : values) each(items, value);
    });
  }
  void perhaps(std::string_view name, const auto& value) {
    perhaps(name, value, [](JsonWriter& item, const auto& content) { item.element(content); });
  }
  void perhaps(std::string_view name, const auto& value, auto each) {
    key(name);
    if (!value) {
      out_ += "null";
      return;
    }
    JsonWriter item(out_);
    each(item, *value);
  }
  template <class Struct>
  void inlined(const Struct& value) {
    fields(*this, value);
  }
  template <class T>
  void last(std::string_view name, const T& value) {
    if constexpr (requires { value.empty(); }) {
      if (!value.empty()) element(value, name);
    } else if (value) {
      element(*value, name);
    }
  }
  void json(std::string_view name, std::string_view value) {
    key(name);
    out_ += value;
  }
  void map(std::string_view name, const auto& entries, auto each) {
    if (entries.empty()) return;
    group(name, [&](JsonWriter& members) {
      for (const auto& [entry, value] : entries) {
        members.key(entry, true);
        JsonWriter item(out_);
        each(item, value);
      }
    });
  }
  void tuple(std::string_view name, auto inside) { enclose(name, '[', ']', inside); }
  void group(std::string_view name, auto inside) { enclose(name, '{', '}', inside); }

  // An item of a list; with a name, a member.
  template <class T>
  void element(const T& value, std::string_view name = {}) {
    if constexpr (std::same_as<T, bool>) {
      flag(name, value);
    } else if constexpr (std::unsigned_integral<T>) {
      number(name, value);
    } else if constexpr (std::signed_integral<T>) {
      integer(name, value);
    } else if constexpr (std::floating_point<T>) {
      real(name, value);
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
      text(name, value, 0);
    } else if constexpr (requires { value.begin(); }) {
      list(name, value, 0);
    } else {
      object(name, value);
    }
  }

 private:
  template <class Value>
  void put(std::string_view name, fmt::format_string<Value&> format, Value value) {
    key(name);
    fmt::format_to(std::back_inserter(out_), format, value);
  }
  void enclose(std::string_view name, char open, char close, auto inside) {
    key(name);
    out_ += open;
    JsonWriter content(out_);
    inside(content);
    out_ += close;
  }
  // The comma and the name in front of a value; items of a list have none.
  void key(std::string_view name, bool is_member = false) {
    if (!std::exchange(is_first_, false)) out_ += ',';
    if (name.empty() && !is_member) return;
    out_ += json_string(name);
    out_ += ':';
  }

  std::string& out_;
  bool is_first_ = true;
};

// The struct's members, without braces.
template <class Struct>
std::string json_members(const Struct& value) {
  std::string members;
  JsonWriter writer(members);
  fields(writer, value);
  return members;
}

// The struct as one object.
template <class Struct>
std::string to_json(const Struct& value) {
  return '{' + json_members(value) + '}';
}

}  // namespace troupe::runtime
