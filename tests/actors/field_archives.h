#pragma once

// Archives (runtime/base/fields.h) for tests of what travels: one draws what a struct may hold, and
// one tells all of it as a text, so that two that are told alike are alike.

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "actors/message_fields.h"
#include "tests/actors/wire_parts.h"

namespace troupe::actors {

// A struct that was drawn, made sound where not every content is; see fault_of().
pipeline::View make_sound(pipeline::View view, Draw& draw);
pipeline::TrainingState make_sound(pipeline::TrainingState state, Draw& draw);
RingHeader make_sound(RingHeader body, Draw& draw);
FigureFound make_sound(FigureFound body, Draw& draw);
Sample make_sound(Sample sample, Draw& draw);
telemetry::NodeSample make_sound(telemetry::NodeSample sample, Draw& draw);
template <class Struct>
Struct make_sound(Struct value, Draw&) {
  return value;
}

template <class Struct>
Struct drawn(Draw& draw);

class DrawFields {
 public:
  explicit DrawFields(Draw& draw) : draw_(draw) {}

  template <std::unsigned_integral T>
  void number(std::string_view, T& value, std::uint64_t most = std::numeric_limits<T>::max()) {
    const std::uint64_t number = draw_.number();
    value = static_cast<T>(most == UINT64_MAX ? number : number % (most + 1));
  }
  template <std::signed_integral T>
  void integer(std::string_view, T& value, std::int64_t least = std::numeric_limits<T>::min(),
               std::int64_t most = std::numeric_limits<T>::max()) {
    const auto width = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least);
    const std::uint64_t number = draw_.number();
    const std::uint64_t within = width == UINT64_MAX ? number : number % (width + 1);
    value = static_cast<T>(static_cast<std::uint64_t>(least) + within);
  }
  void real(std::string_view, double& value) { value = draw_.real(); }
  void flag(std::string_view, bool& value) { value = draw_.flag(); }
  void time(std::string_view, runtime::Duration& value) {
    value = runtime::Duration(draw_.number() / 2);
  }
  void hash(std::string_view, runtime::Hash128& value) { value = draw_.hash(); }
  template <class Enum>
  void choice(std::string_view, Enum& value, Enum last) {
    value = static_cast<Enum>(draw_.up_to(static_cast<std::size_t>(last)));
  }
  void choice(std::string_view, runtime::ErrorKind& value, runtime::ErrorKind last) {
    value = static_cast<runtime::ErrorKind>(1 + draw_.up_to(static_cast<std::size_t>(last) - 1));
  }
  template <class Enum>
  void perhaps_choice(std::string_view name, std::optional<Enum>& value, Enum last) {
    if (draw_.flag()) choice(name, value.emplace(), last);
  }
  void text(std::string_view, std::string& value, std::size_t most) {
    value = draw_.text(std::min<std::size_t>(most, 200));
  }
  void prose(std::string_view name, std::string& value, std::size_t most) {
    text(name, value, most);
  }
  template <class Struct>
  void object(std::string_view, Struct& value) {
    value = drawn<Struct>(draw_);
  }
  template <class T>
  void list(std::string_view name, std::vector<T>& values, std::size_t most) {
    list(name, values, most, [](auto& archive, auto& value) { archive.element(value); });
  }
  template <class T>
  void list(std::string_view, std::vector<T>& values, std::size_t most, auto each) {
    values.resize(draw_.up_to(std::min<std::size_t>(most, 20)));
    for (T& value : values) each(*this, value);
  }
  void first(std::string_view name, auto& values, std::size_t most) { list(name, values, most); }
  template <class T>
  void perhaps(std::string_view, std::optional<T>& value) {
    if (draw_.flag()) element(value.emplace());
  }
  template <class T>
  void perhaps(std::string_view name, std::shared_ptr<const T>& pointer) {
    if (draw_.flag()) object(name, pointer);
  }
  template <class T>
  void last(std::string_view name, std::shared_ptr<const T>& pointer) {
    perhaps(name, pointer);
  }
  template <class T>
  void object(std::string_view, std::shared_ptr<const T>& pointer) {
    pointer = std::make_shared<const T>(drawn<T>(draw_));
  }
  void inlined(auto& value) { object("", value); }
  void shared(std::string_view name, auto& pointer) { object(name, pointer); }
  void floats(std::string_view, std::vector<float>& values) {
    values = draw_.floats(draw_.up_to(200));
  }
  void element(auto& value) {
    if constexpr (std::unsigned_integral<std::remove_cvref_t<decltype(value)>>) {
      number("", value);
    } else {
      object("", value);
    }
  }

 private:
  Draw& draw_;
};

template <class Struct>
Struct drawn(Draw& draw) {
  Struct value{};
  DrawFields archive(draw);
  fields(archive, value);
  return make_sound(std::move(value), draw);
}

class TextFields {
 public:
  std::string text_;

  void number(std::string_view name, std::unsigned_integral auto value, std::uint64_t = 0) {
    tell(name, value);
  }
  void integer(std::string_view name, std::signed_integral auto value, std::int64_t = 0,
               std::int64_t = 0) {
    tell(name, value);
  }
  // All bits count, also those of a NaN.
  void real(std::string_view name, double value) {
    tell(name, std::bit_cast<std::uint64_t>(value));
  }
  void flag(std::string_view name, bool value) { tell(name, value); }
  void time(std::string_view name, runtime::Duration value) { tell(name, value.count()); }
  void hash(std::string_view name, const runtime::Hash128& value) { tell(name, value.text()); }
  void choice(std::string_view name, auto value, auto) { tell(name, static_cast<int>(value)); }
  void perhaps_choice(std::string_view name, auto value, auto) {
    tell(name, value ? static_cast<int>(*value) : -1);
  }
  void text(std::string_view name, std::string_view value, std::size_t) {
    tell(name, fmt::format("{}:{}", value.size(), value));
  }
  void prose(std::string_view name, std::string_view value, std::size_t most) {
    text(name, value, most);
  }
  void object(std::string_view name, const auto& value) {
    tell(name, "{");
    fields(*this, runtime::held(value));
    text_ += "}";
  }
  void list(std::string_view name, const auto& values, std::size_t most) {
    list(name, values, most, [](auto& archive, auto& value) { archive.element(value); });
  }
  void list(std::string_view name, const auto& values, std::size_t, auto each) {
    tell(name, values.size());
    for (const auto& value : values) each(*this, value);
  }
  void first(std::string_view name, const auto& values, std::size_t most) {
    list(name, values, most);
  }
  void perhaps(std::string_view name, const auto& value) {
    tell(name, value ? "is there" : "is absent");
    if (value) element(*value);
  }
  void last(std::string_view name, const auto& pointer) { perhaps(name, pointer); }
  void inlined(const auto& value) { object("", value); }
  void shared(std::string_view name, const auto& pointer) { object(name, pointer); }
  void floats(std::string_view name, const std::vector<float>& values) {
    tell(name, values.size());
    for (const float value : values) tell("", std::bit_cast<std::uint32_t>(value));
  }
  void element(const auto& value) {
    if constexpr (std::unsigned_integral<std::remove_cvref_t<decltype(value)>>) {
      tell("", value);
    } else {
      object("", value);
    }
  }

 private:
  void tell(std::string_view name, const auto& value) {
    fmt::format_to(std::back_inserter(text_), "{} {}\n", name, value);
  }
};

template <class Struct>
std::string told(const Struct& value) {
  TextFields archive;
  fields(archive, value);
  return std::move(archive.text_);
}

}  // namespace troupe::actors
