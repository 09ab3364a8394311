#pragma once

// Writes and reads the fields of a struct (runtime/base/fields.h) in a packet's header, as one list
// of values in the order of its fields. Absent values are nil. Floats and Buffers are frames of
// their own behind the header, and no values.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/base/buffer.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/fields.h"
#include "runtime/base/hash.h"
#include "runtime/base/utf8.h"
#include "runtime/transport/wire_format.h"

namespace troupe::runtime {

// An archive that counts: how many values the list of a struct has.
class FieldCount {
 public:
  std::size_t values = 0;

  void number(auto&&...) { ++values; }
  void integer(auto&&...) { ++values; }
  void real(auto&&...) { ++values; }
  void flag(auto&&...) { ++values; }
  void time(auto&&...) { ++values; }
  void hash(auto&&...) { ++values; }
  void choice(auto&&...) { ++values; }
  void perhaps_choice(auto&&...) { ++values; }
  void text(auto&&...) { ++values; }
  void prose(auto&&...) { ++values; }
  void words(auto&&...) { ++values; }
  void converted(auto&&...) { ++values; }
  void object(auto&&...) { ++values; }
  void list(auto&&...) { ++values; }
  void first(auto&&...) { ++values; }
  void all(auto&&...) { ++values; }
  void perhaps(auto&&...) { ++values; }
  void shared(auto&&...) { ++values; }
  template <class T>
  void inlined(const std::shared_ptr<const T>& pointer) {
    CHECK(pointer != nullptr, "a message without what it is about");
    fields(*this, *pointer);
  }
  template <class Struct>
  void inlined(const Struct& value) {
    fields(*this, value);
  }
  void last(std::string_view, const auto& pointer) { values += pointer != nullptr ? 1 : 0; }
  void floats(auto&&...) {}
  void attached(auto&&...) {}
};

// Never fails: see WireWriter. CHECKs that lists have no more than they may.
class FieldWriter {
 public:
  explicit FieldWriter(WireWriter& out) : out_(out) {}

  void number(std::string_view, std::unsigned_integral auto value, std::uint64_t = 0) {
    out_.number(value);
  }
  void integer(std::string_view, std::signed_integral auto value, std::int64_t = 0,
               std::int64_t = 0) {
    out_.integer(value);
  }
  void real(std::string_view, double value) { out_.real(value); }
  void flag(std::string_view, bool value) { out_.flag(value); }
  void time(std::string_view, Duration value) { out_.integer(value.count()); }
  void hash(std::string_view, const Hash128& value) { out_.hash(value); }
  template <class Enum>
  void choice(std::string_view, Enum value, Enum) {
    out_.number(static_cast<std::uint64_t>(value));
  }
  template <class Enum>
  void perhaps_choice(std::string_view, std::optional<Enum> value, Enum) {
    out_.number(value ? 1 + static_cast<std::uint64_t>(*value) : 0);
  }
  void text(std::string_view, std::string_view value, std::size_t) { out_.text(value); }
  void prose(std::string_view, std::string_view value, std::size_t most) {
    out_.text(value.substr(0, most));
  }
  void words(std::string_view, std::string_view value, std::size_t) { out_.text(value); }
  void converted(std::string_view, const auto& value, std::size_t, auto to_text, auto) {
    out_.text(to_text(value));
  }
  template <class Struct>
  void object(std::string_view, const Struct& value);
  template <class T>
  void list(std::string_view name, const std::vector<T>& values, std::size_t most) {
    list(name, values, most, [](auto& archive, auto& value) { archive.element(value); });
  }
  template <class T>
  void list(std::string_view name, const std::vector<T>& values, std::size_t most, auto each) {
    CHECK(values.size() <= most, name);
    out_.list(values.size());
    for (const T& value : values) each(*this, value);
  }
  template <class T>
  void first(std::string_view, const std::vector<T>& values, std::size_t most) {
    const std::size_t count = std::min(values.size(), most);
    out_.list(count);
    for (std::size_t i = 0; i < count; ++i) element(values[i]);
  }
  template <std::size_t kCount>
  void all(std::string_view, const std::array<std::uint64_t, kCount>& values) {
    out_.list(kCount);
    for (const std::uint64_t value : values) out_.number(value);
  }
  void perhaps(std::string_view, const auto& value) { value ? element(*value) : out_.none(); }
  void shared(std::string_view name, const auto& pointer) {
    CHECK(pointer != nullptr, name);
    element(*pointer);
  }
  template <class T>
  void inlined(const std::shared_ptr<const T>& pointer) {
    fields(*this, *pointer);
  }
  template <class Struct>
  void inlined(const Struct& value) {
    fields(*this, value);
  }
  void last(std::string_view, const auto& pointer) {
    if (pointer != nullptr) element(*pointer);
  }
  void floats(std::string_view, const std::vector<float>& values) {
    out_.attach(Buffer::copy_of(std::as_bytes(std::span(values))));
  }
  void attached(std::string_view, const Buffer& buffer) { out_.attach(buffer); }

  // Writes one element of a list.
  void element(const auto& value) {
    if constexpr (std::unsigned_integral<std::remove_cvref_t<decltype(value)>>) {
      out_.number(value);
    } else {
      object("", value);
    }
  }

 private:
  WireWriter& out_;
};

// Fails the reader (WireReader::fail) where a value is not what the list of fields says.
class FieldReader {
 public:
  // No struct has more values.
  static constexpr std::size_t kMostValues = 64;
  static constexpr std::size_t kElement = SIZE_MAX;

  // `values`: that the struct has in the packet, or kElement for the one value of an element.
  FieldReader(WireReader& in, std::size_t values) : in_(in), left_(values) {}

  template <std::unsigned_integral T>
  void number(std::string_view, T& value, std::uint64_t most = std::numeric_limits<T>::max()) {
    if (take()) value = static_cast<T>(in_.number(most));
  }
  template <std::signed_integral T>
  void integer(std::string_view, T& value, std::int64_t least = std::numeric_limits<T>::min(),
               std::int64_t most = std::numeric_limits<T>::max()) {
    if (take()) value = static_cast<T>(in_.integer(least, most));
  }
  void real(std::string_view, double& value) {
    if (take()) value = in_.real();
  }
  void flag(std::string_view, bool& value) {
    if (take()) value = in_.flag();
  }
  void time(std::string_view, Duration& value) {
    if (take()) value = Duration(in_.integer());
  }
  void hash(std::string_view, Hash128& value) {
    if (take()) value = in_.hash();
  }
  template <class Enum>
  void choice(std::string_view, Enum& value, Enum last) {
    if (take()) value = static_cast<Enum>(in_.number(static_cast<std::uint64_t>(last)));
  }
  template <class Enum>
  void perhaps_choice(std::string_view, std::optional<Enum>& value, Enum last) {
    if (!take()) return;
    const std::uint64_t number = in_.number(1 + static_cast<std::uint64_t>(last));
    if (number > 0) value = static_cast<Enum>(number - 1);
  }
  void text(std::string_view, std::string& value, std::size_t most) {
    if (take()) value = in_.text(most);
  }
  void prose(std::string_view name, std::string& value, std::size_t most) {
    text(name, value, most);
  }
  void words(std::string_view, std::string& value, std::size_t most) {
    if (take()) value = printable(in_.text(most));
  }
  void converted(std::string_view name, auto& value, std::size_t most, auto, auto from_text) {
    if (!take()) return;
    const auto made = from_text(in_.text(most));
    if (made) value = *made;
    if (in_.ok() && !made) in_.fail(fmt::format("no {} stands", name));
  }
  template <class Struct>
  void object(std::string_view, Struct& value);
  template <class T>
  void list(std::string_view name, std::vector<T>& values, std::size_t most) {
    list(name, values, most, [](auto& archive, auto& value) { archive.element(value); });
  }
  // One by one: what is said to follow costs nothing before it has come.
  template <class T>
  void list(std::string_view, std::vector<T>& values, std::size_t most, auto each) {
    if (!take()) return;
    const std::size_t count = in_.list_up_to(most);
    if constexpr (std::is_arithmetic_v<T>) values.reserve(count);
    FieldReader elements(in_, kElement);
    while (values.size() < count && in_.ok()) each(elements, values.emplace_back());
  }
  template <class T>
  void first(std::string_view name, std::vector<T>& values, std::size_t most) {
    list(name, values, most);
  }
  template <std::size_t kCount>
  void all(std::string_view, std::array<std::uint64_t, kCount>& values) {
    if (!take()) return;
    in_.list(kCount);
    for (std::uint64_t& value : values) value = in_.number();
  }
  template <class T>
  void perhaps(std::string_view, std::optional<T>& value) {
    if (!take() || !in_.present()) return;
    FieldReader(in_, kElement).element(value.emplace());
  }
  template <class T>
  void perhaps(std::string_view name, std::shared_ptr<const T>& pointer) {
    if (take() && in_.present()) read_shared(name, pointer);
  }
  template <class T>
  void shared(std::string_view name, std::shared_ptr<const T>& pointer) {
    if (take()) read_shared(name, pointer);
  }
  template <class T>
  void inlined(std::shared_ptr<const T>& pointer) {
    auto made = std::make_shared<T>();
    fields(*this, *made);
    check(*made);
    pointer = std::move(made);
  }
  template <class Struct>
  void inlined(Struct& value) {
    fields(*this, value);
    check(value);
  }
  template <class T>
  void last(std::string_view name, std::shared_ptr<const T>& pointer) {
    if (left_ > 0 && take()) read_shared(name, pointer);
  }
  void floats(std::string_view, std::vector<float>& values) {
    const Buffer frame = in_.attachment();
    if (frame.size() % sizeof(float) != 0) return in_.fail("an array that ends within a float");
    values.resize(frame.size() / sizeof(float));
    // A copy, so the frame may lie anywhere.
    if (!values.empty()) std::memcpy(values.data(), frame.data(), frame.size());
  }
  void attached(std::string_view, Buffer& buffer) { buffer = in_.attachment(); }

  void element(auto& value) {
    if constexpr (std::unsigned_integral<std::remove_cvref_t<decltype(value)>>) {
      number("", value);
    } else {
      object("", value);
    }
  }

  // After all fields: nothing may be left, and the struct is sound.
  template <class Struct>
  void finish(const Struct& value) {
    if (left_ > 0) in_.fail("it has more fields than are known");
    check(value);
  }

 private:
  bool take() {
    if (left_ == 0) in_.fail("a field is missing");
    if (left_ != kElement && left_ > 0) --left_;
    return in_.ok();
  }
  template <class Struct>
  void check(const Struct& value) {
    if constexpr (requires { fault_of(value); }) {
      if (!in_.ok()) return;
      if (const char* const fault = fault_of(value)) in_.fail(fault);
    }
  }
  template <class T>
  void read_shared(std::string_view name, std::shared_ptr<const T>& pointer) {
    auto made = std::make_shared<T>();
    FieldReader element(in_, kElement);
    element.object(name, *made);
    pointer = std::move(made);
  }

  WireReader& in_;
  std::size_t left_;
};

// As one value.
template <class Struct>
void write_fields(WireWriter& out, const Struct& value) {
  FieldCount count;
  fields(count, value);
  CHECK(count.values <= FieldReader::kMostValues, "more fields than a struct may have");
  out.list(count.values);
  FieldWriter writer(out);
  fields(writer, value);
}

// Reads the same value; in.problem() says what is wrong with it.
template <class Struct>
void read_fields(WireReader& in, Struct& value) {
  FieldReader reader(in, in.list_up_to(FieldReader::kMostValues));
  fields(reader, value);
  reader.finish(value);
}

template <class Struct>
void FieldWriter::object(std::string_view, const Struct& value) {
  write_fields(out_, value);
}

template <class Struct>
void FieldReader::object(std::string_view, Struct& value) {
  if (take()) read_fields(in_, value);
}

}  // namespace troupe::runtime
