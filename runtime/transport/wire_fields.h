#pragma once

// Writes and reads the fields of a struct (runtime/base/fields.h) in a packet's header, as one list
// of values in the order of its fields. Absent values are nil. Floats, Buffers and shared structs
// are frames of their own behind the header, and no values.

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

// The call for an element of a list that names no other: a number or a struct.
struct ElementCall {
  template <class T>
  void operator()(auto&& archive, T& value) const {
    if constexpr (std::unsigned_integral<std::remove_const_t<T>>) {
      archive.number("", value);
    } else {
      archive.object("", value);
    }
  }
};

// No struct has more values.
inline constexpr std::size_t kMostValues = 64;

// A struct, or the one that a pointer leads to.
template <class Struct>
const Struct& held(const Struct& value) {
  return value;
}
template <class Struct>
const Struct& held(const std::shared_ptr<const Struct>& pointer) {
  CHECK(pointer != nullptr, "a message without what it is about");
  return *pointer;
}

// A place that is read into: the value itself, or what an optional or a pointer holds from now on.
template <class T>
T& place_in(T& value) {
  return value;
}
template <class T>
T& place_in(std::optional<T>& value) {
  return value.emplace();
}
template <class T>
T& place_in(std::shared_ptr<const T>& pointer) {
  auto made = std::make_shared<T>();
  T& place = *made;
  pointer = std::move(made);
  return place;
}

// Never fails: see WireWriter. CHECKs that lists have no more than they may.
class FieldWriter {
 public:
  explicit FieldWriter(WireWriter& out) : out_(out) {}

  void number(std::string_view, std::unsigned_integral auto value, std::uint64_t = 0) {
    next().number(value);
  }
  void integer(std::string_view, std::signed_integral auto value, std::int64_t = 0,
               std::int64_t = 0) {
    next().integer(value);
  }
  void real(std::string_view, double value) { next().real(value); }
  void flag(std::string_view, bool value) { next().flag(value); }
  void time(std::string_view, Duration value) { next().integer(value.count()); }
  void hash(std::string_view, const Hash128& value) { next().hash(value); }
  template <class Enum>
  void choice(std::string_view, Enum value, Enum) {
    next().number(static_cast<std::uint64_t>(value));
  }
  template <class Enum>
  void perhaps_choice(std::string_view, std::optional<Enum> value, Enum) {
    next().number(value ? 1 + static_cast<std::uint64_t>(*value) : 0);
  }
  void text(std::string_view, std::string_view value, std::size_t) { next().text(value); }
  void prose(std::string_view, std::string_view value, std::size_t most) {
    next().text(value.substr(0, most));
  }
  void words(std::string_view, std::string_view value, std::size_t) { next().text(value); }
  void converted(std::string_view, const auto& value, std::size_t, auto to_text, auto) {
    next().text(to_text(value));
  }
  void object(std::string_view, const auto& value);
  template <class T, class Each = ElementCall>
  void list(std::string_view name, const std::vector<T>& values, std::size_t most, Each each = {}) {
    CHECK(values.size() <= most, name);
    next().list(values.size());
    FieldWriter elements(out_);
    for (const T& value : values) each(elements, value);
  }
  template <class T>
  void first(std::string_view, const std::vector<T>& values, std::size_t most) {
    const std::size_t count = std::min(values.size(), most);
    next().list(count);
    FieldWriter elements(out_);
    for (std::size_t i = 0; i < count; ++i) ElementCall()(elements, values[i]);
  }
  template <std::size_t kCount>
  void all(std::string_view, const std::array<std::uint64_t, kCount>& values) {
    next().list(kCount);
    for (const std::uint64_t value : values) out_.number(value);
  }
  void perhaps(std::string_view, const auto& value) {
    value ? ElementCall()(*this, *value) : next().none();
  }
  void inlined(const auto& value) { fields(*this, held(value)); }
  void last(std::string_view, const auto& pointer) {
    if (pointer != nullptr) object("", *pointer);
  }
  void floats(std::string_view, const std::vector<float>& values) {
    out_.attach(Buffer::copy_of(std::as_bytes(std::span(values))));
  }
  void attached(std::string_view, const Buffer& buffer) { out_.attach(buffer); }
  template <class Struct>
  void shared(std::string_view, const std::shared_ptr<const Struct>& pointer);

  // That were written so far. Attachments are no values, and neither is what stands within one.
  std::size_t values() const { return values_; }

 private:
  WireWriter& next() {
    ++values_;
    return out_;
  }

  WireWriter& out_;
  std::size_t values_ = 0;
};

// Fails the reader (WireReader::fail) where a value is not what the list of fields says.
class FieldReader {
 public:
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
  void object(std::string_view, auto& value);
  // One by one: what is said to follow costs nothing before it has come.
  template <class T, class Each = ElementCall>
  void list(std::string_view, std::vector<T>& values, std::size_t most, Each each = {}) {
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
  void perhaps(std::string_view, auto& value) {
    if (take() && in_.present()) ElementCall()(FieldReader(in_, kElement), place_in(value));
  }
  void inlined(auto& value) {
    auto& place = place_in(value);
    fields(*this, place);
    const char* const fault = in_.ok() ? fault_in(place) : nullptr;
    if (fault != nullptr) in_.fail(fault);
  }
  void last(std::string_view name, auto& pointer) {
    if (left_ > 0) object(name, pointer);
  }
  void floats(std::string_view, std::vector<float>& values) {
    const Buffer frame = in_.attachment();
    if (frame.size() % sizeof(float) != 0) return in_.fail("an array that ends within a float");
    values.resize(frame.size() / sizeof(float));
    // A copy, so the frame may lie anywhere.
    if (!values.empty()) std::memcpy(values.data(), frame.data(), frame.size());
  }
  void attached(std::string_view, Buffer& buffer) { buffer = in_.attachment(); }
  template <class Struct>
  void shared(std::string_view, std::shared_ptr<const Struct>& pointer);

  // That have not been read.
  std::size_t left() const { return left_; }

 private:
  bool take() {
    if (left_ == 0) in_.fail("a field is missing");
    if (left_ != kElement && left_ > 0) --left_;
    return in_.ok();
  }

  WireReader& in_;
  std::size_t left_;
};

// Writes a list of the values that `write` writes, with the FieldWriter that it is given.
void write_list(WireWriter& out, auto write) {
  const std::size_t begin = out.begin_list();
  FieldWriter writer(out);
  write(writer);
  CHECK(writer.values() <= kMostValues, "more fields than a struct may have");
  out.end_list(begin, writer.values());
}

// As one value.
template <class Struct>
void write_fields(WireWriter& out, const Struct& value) {
  write_list(out, [&](FieldWriter& writer) { fields(writer, value); });
}

// Reads a struct of so many values that stand next: all of them, and a sound one.
template <class Struct>
void read_values(WireReader& in, std::size_t values, Struct& value) {
  FieldReader reader(in, values);
  reader.inlined(value);
  if (reader.left() > 0) in.fail("it has more fields than are known");
}

// Reads the same value; in.problem() says what is wrong with it.
template <class Struct>
void read_fields(WireReader& in, Struct& value) {
  read_values(in, in.list_up_to(kMostValues), value);
}

void FieldWriter::object(std::string_view, const auto& value) {
  ++values_;
  write_fields(out_, held(value));
}

void FieldReader::object(std::string_view, auto& value) {
  if (take()) read_fields(in_, place_in(value));
}

// The frame of the newest struct is kept, and the struct with it, so that no other can be taken for
// it.
template <class Struct>
void FieldWriter::shared(std::string_view, const std::shared_ptr<const Struct>& pointer) {
  thread_local std::shared_ptr<const Struct> newest;
  thread_local Buffer frame;
  if (newest != pointer || newest == nullptr) {
    WireWriter out;
    write_fields(out, held(pointer));
    frame = out.take_frame();
    newest = pointer;
  }
  out_.attach(frame);
}

template <class Struct>
void FieldReader::shared(std::string_view, std::shared_ptr<const Struct>& pointer) {
  const Buffer frame = in_.attachment();
  if (!in_.ok()) return;
  WireReader in(frame.bytes());
  read_fields(in, place_in(pointer));
  if (!in.finished()) in_.fail(in.problem());
}

}  // namespace troupe::runtime
