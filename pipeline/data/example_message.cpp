#include "pipeline/data/example_message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

#include "runtime/base/bytes.h"

namespace troupe::pipeline {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using Wire = google::protobuf::internal::WireFormatLite;
using Bytes = std::span<const std::byte>;
using Kind = ExampleFeature::Kind;

// Example.features, Features.feature, the list of a Feature, and the values of a list.
constexpr int kOnly = 1;
constexpr int kKey = 1;
constexpr int kValue = 2;
// Entries, also of one name; nobody writes more.
constexpr std::size_t kMostFeatures = 1024;

std::string_view view(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A field of a message: `bytes` of one with a length, else `bits`.
struct Field {
  int number = 0;
  Wire::WireType type = Wire::WIRETYPE_VARINT;
  std::uint64_t bits = 0;
  Bytes bytes;
};

bool read_field(CodedInputStream& stream, Bytes message, std::uint32_t tag, Field& field) {
  field.number = Wire::GetTagFieldNumber(tag);
  field.type = Wire::GetTagWireType(tag);
  std::uint32_t size = 0;
  switch (field.type) {
    case Wire::WIRETYPE_VARINT:
      return stream.ReadVarint64(&field.bits);
    case Wire::WIRETYPE_FIXED64: {
      google::protobuf::uint64 bits = 0;
      if (!stream.ReadLittleEndian64(&bits)) return false;
      field.bits = bits;
      return true;
    }
    case Wire::WIRETYPE_FIXED32:
      if (!stream.ReadLittleEndian32(&size)) return false;
      field.bits = size;
      return true;
    case Wire::WIRETYPE_LENGTH_DELIMITED: {
      if (!stream.ReadVarint32(&size)) return false;
      const auto at = static_cast<std::size_t>(stream.CurrentPosition());
      if (size > message.size() - at || !stream.Skip(static_cast<int>(size))) return false;
      field.bytes = message.subspan(at, size);
      return true;
    }
    default:
      return false;  // groups, which these messages have not
  }
}

// Calls `take` for each field; false where the message is damaged or `take` says so.
template <class Take>
bool walk(Bytes message, const Take& take) {
  if (message.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return false;
  CodedInputStream stream(reinterpret_cast<const google::protobuf::uint8*>(message.data()),
                          static_cast<int>(message.size()));
  while (const std::uint32_t tag = stream.ReadTag()) {
    Field field;
    if (!read_field(stream, message, tag, field) || !take(field)) return false;
  }
  return stream.ConsumedEntireMessage();
}

// Calls `take` with the bits of each number of a list, packed or not.
template <class Take>
bool walk_numbers(Bytes list, Kind kind, const Take& take) {
  const auto single = kind == Kind::kFloats ? Wire::WIRETYPE_FIXED32 : Wire::WIRETYPE_VARINT;
  return walk(list, [&](const Field& field) {
    if (field.number != kOnly) return true;
    if (field.type == single) {
      take(field.bits);
      return true;
    }
    if (field.type != Wire::WIRETYPE_LENGTH_DELIMITED) return false;
    if (kind == Kind::kFloats) {
      if (field.bytes.size() % 4 != 0) return false;
      for (std::size_t i = 0; i < field.bytes.size(); i += 4) {
        take(runtime::from_little_endian(field.bytes.subspan(i, 4)));
      }
      return true;
    }
    CodedInputStream packed(reinterpret_cast<const google::protobuf::uint8*>(field.bytes.data()),
                            static_cast<int>(field.bytes.size()));
    std::uint64_t bits = 0;
    while (packed.CurrentPosition() < static_cast<int>(field.bytes.size())) {
      if (!packed.ReadVarint64(&bits)) return false;
      take(bits);
    }
    return true;
  });
}

// The only value of a list of bytes.
std::optional<Bytes> only_bytes(Bytes list) {
  std::optional<Bytes> found;
  std::size_t values = 0;
  const bool whole = walk(list, [&](const Field& field) {
    if (field.number != kOnly) return true;
    found = field.bytes;
    ++values;
    return field.type == Wire::WIRETYPE_LENGTH_DELIMITED;
  });
  if (!whole || values != 1) return std::nullopt;
  return found;
}

float float_of(std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

template <class T>
bool read_bytes(Bytes list, std::span<T> out) {
  const auto bytes = only_bytes(list);
  if (!bytes) return false;
  if (bytes->size() == out.size()) {
    std::transform(bytes->begin(), bytes->end(), out.begin(),
                   [](std::byte byte) { return static_cast<T>(std::to_integer<int>(byte)); });
    return true;
  }
  if (bytes->size() != 4 * out.size()) return false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<T>(float_of(runtime::from_little_endian(bytes->subspan(4 * i, 4))));
  }
  return true;
}

bool read_feature(const Field& entry, ExampleFeature& feature) {
  if (entry.type != Wire::WIRETYPE_LENGTH_DELIMITED) return false;
  return walk(entry.bytes, [&](const Field& field) {
    if (field.type != Wire::WIRETYPE_LENGTH_DELIMITED) return false;
    if (field.number == kKey) feature.name = view(field.bytes);
    if (field.number != kValue) return true;
    return walk(field.bytes, [&](const Field& list) {
      if (list.type != Wire::WIRETYPE_LENGTH_DELIMITED) return false;
      if (list.number < 1 || list.number > 3) return true;
      feature.kind = static_cast<Kind>(list.number);
      feature.list = list.bytes;
      return true;
    });
  });
}

// A field with a length, to the end of `out`.
void append(std::string& out, int number, std::string_view content) {
  runtime::append_varint(out, Wire::MakeTag(number, Wire::WIRETYPE_LENGTH_DELIMITED));
  runtime::append_varint(out, content.size());
  out += content;
}

}  // namespace

std::optional<std::uint64_t> ExampleFeature::count() const {
  if (kind == Kind::kNone) return 0;
  if (kind == Kind::kBytes) {
    const auto bytes = only_bytes(list);
    if (!bytes) return std::nullopt;
    return bytes->size();
  }
  std::uint64_t values = 0;
  if (!walk_numbers(list, kind, [&](std::uint64_t) { ++values; })) return std::nullopt;
  return values;
}

template <class T>
bool ExampleFeature::read(std::span<T> out) const {
  if (kind == Kind::kNone) return out.empty();
  if (kind == Kind::kBytes) return read_bytes(list, out);
  std::size_t values = 0;
  const bool whole = walk_numbers(list, kind, [&](std::uint64_t bits) {
    if (values < out.size()) {
      out[values] = kind == Kind::kFloats ? static_cast<T>(float_of(bits))
                                          : static_cast<T>(static_cast<std::int64_t>(bits));
    }
    ++values;
  });
  return whole && values == out.size();
}

template bool ExampleFeature::read(std::span<float> out) const;
template bool ExampleFeature::read(std::span<double> out) const;

const char* text(ExampleFeature::Kind kind) {
  switch (kind) {
    case Kind::kNone:
      return "nothing";
    case Kind::kBytes:
      return "bytes";
    case Kind::kFloats:
      return "float32";
    case Kind::kIntegers:
      return "int64";
  }
  return "nothing";
}

std::optional<std::vector<ExampleFeature>> read_example(std::span<const std::byte> message) {
  std::vector<ExampleFeature> features;
  std::size_t entries = 0;
  const auto take_entry = [&](const Field& entry) {
    if (entry.number != kOnly) return true;
    if (++entries > kMostFeatures) return false;
    ExampleFeature feature;
    if (!read_feature(entry, feature)) return false;
    std::erase_if(features,
                  [&](const ExampleFeature& other) { return other.name == feature.name; });
    features.push_back(feature);
    return true;
  };
  const bool whole = walk(message, [&](const Field& field) {
    if (field.number != kOnly) return true;
    return field.type == Wire::WIRETYPE_LENGTH_DELIMITED && walk(field.bytes, take_entry);
  });
  if (!whole) return std::nullopt;
  return features;
}

void ExampleWriter::add(std::string_view name, int kind, std::string_view list) {
  std::string feature;
  append(feature, kind, list);
  std::string entry;
  append(entry, kKey, name);
  append(entry, kValue, feature);
  append(features_, kOnly, entry);
}

ExampleWriter& ExampleWriter::floats(std::string_view name, std::span<const float> values) {
  std::string packed;
  for (const float value : values) {
    const auto bytes = runtime::to_little_endian(std::bit_cast<std::uint32_t>(value));
    packed.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  std::string list;
  append(list, kOnly, packed);
  add(name, static_cast<int>(Kind::kFloats), list);
  return *this;
}

ExampleWriter& ExampleWriter::integers(std::string_view name,
                                       std::span<const std::int64_t> values) {
  std::string packed;
  for (const std::int64_t value : values) {
    runtime::append_varint(packed, static_cast<std::uint64_t>(value));
  }
  std::string list;
  append(list, kOnly, packed);
  add(name, static_cast<int>(Kind::kIntegers), list);
  return *this;
}

ExampleWriter& ExampleWriter::bytes(std::string_view name, std::string_view value) {
  std::string list;
  append(list, kOnly, value);
  add(name, static_cast<int>(Kind::kBytes), list);
  return *this;
}

std::string ExampleWriter::message() const {
  std::string all;
  append(all, kOnly, features_);
  return all;
}

}  // namespace troupe::pipeline
