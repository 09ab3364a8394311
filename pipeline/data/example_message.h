#pragma once

// tf.train.Example of TensorFlow (tensorflow/core/example/feature.proto): named lists of numbers or
// of bytes. Read in place, and written.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::pipeline {

// One feature of an Example, as it lies in the message.
struct ExampleFeature {
  enum class Kind : std::uint8_t { kNone, kBytes, kFloats, kIntegers };

  std::string_view name;
  Kind kind = Kind::kNone;
  std::span<const std::byte> list;  // the message with the values

  // How many values, or, of bytes, how many bytes in the only value. Nothing if the list is
  // damaged, or holds several values of bytes.
  std::optional<std::uint64_t> count() const;
  // The values as T; `out` has count() places. Bytes are numbers of 8 bits without a sign, or
  // little-endian float32 where `out` has a fourth of their count. False: another count, or damage.
  template <class T>
  bool read(std::span<T> out) const;
};

const char* text(ExampleFeature::Kind kind);  // "float32", "int64", "bytes"

// All features of a message, in its order; of two with one name, the later counts. Nothing if it is
// no Example, or has more than 1024. Views of `message`.
std::optional<std::vector<ExampleFeature>> read_example(std::span<const std::byte> message);

// Makes a message: the same calls make the same bytes.
class ExampleWriter {
 public:
  ExampleWriter& floats(std::string_view name, std::span<const float> values);
  ExampleWriter& integers(std::string_view name, std::span<const std::int64_t> values);
  ExampleWriter& bytes(std::string_view name, std::string_view value);
  std::string message() const;

 private:
  void add(std::string_view name, int kind, std::string_view list);

  std::string features_;
};

}  // namespace troupe::pipeline
