#pragma once

// Shapes. Every tensor is dense, row-major and channels last: sample, x, y, z, channel.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace troupe::model {

enum class DataType : std::uint8_t { kFloat32, kFloat64 };

std::size_t bytes_of(DataType type);

using Extent = std::array<std::int64_t, 3>;  // per axis x, y, z
inline std::int64_t cells(const Extent& extent) { return extent[0] * extent[1] * extent[2]; }

// Shape of one sample. A flat feature vector has spatial rank 0 and space {1, 1, 1}; an image of
// spatial rank 1 has space {x, 1, 1}, one of rank 2 {x, y, 1}.
struct Shape {
  Extent space{1, 1, 1};
  std::int64_t channels = 1;
  int spatial_rank = 0;

  std::int64_t cells() const { return space[0] * space[1] * space[2]; }
  std::int64_t elements() const { return cells() * channels; }
  bool operator==(const Shape&) const = default;
  // "256" for features, "51x51x25x8" for an image of spatial rank 3 with 8 channels.
  std::string text() const;

  static Shape features(std::int64_t count) { return {{1, 1, 1}, count, 0}; }
  static Shape image(Extent space, std::int64_t channels) { return {space, channels, 3}; }
};

}  // namespace troupe::model
