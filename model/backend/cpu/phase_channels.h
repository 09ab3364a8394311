#pragma once

// The channels of phases that a tap of a kernel has (ConvolutionGeometry): products with the zeros
// of all others are left out. A sum of finite numbers has the same bits without them, except the
// sign of a zero: one that is a negative number too small for a float may stay -0. An image's bias
// makes +0 of it, unless it is -0 itself, and a kernel's derivative never is -0. An infinite number
// makes no NaN with such a zero here, where other backends have one.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/operation.h"

namespace troupe::model::cpu {

class PhaseChannels {
 public:
  // Neighbouring channels.
  struct Range {
    std::int64_t first = 0, count = 0;
  };
  // Neighbouring phases that have the same taps: a bit for each axis along which they lack the last
  // one.
  struct Group {
    Range channels;
    std::size_t lacks = 0;

    bool has(std::size_t last) const { return (lacks & last) == 0; }
  };

  // `channels` are those of all phases. With tiles all have all taps along z. Ranges begin and end
  // with whole pairs of `in_pair` channels. They are all channels at once where phases have few.
  PhaseChannels(const ConvolutionGeometry& geometry, std::int64_t channels, bool tiles,
                std::int64_t in_pair);

  const std::vector<Group>& groups() const { return groups_; }
  // True if all have all taps.
  bool are_whole() const { return groups_.size() == 1 && groups_.front().lacks == 0; }
  // A bit for each axis along which the tap is the last one.
  std::size_t last(const Extent& tap) const;
  std::span<const Range> of_tap(const Extent& tap) const { return of_taps_[last(tap)]; }

 private:
  Extent kernel_;
  std::vector<Group> groups_;
  std::array<std::vector<Range>, 8> of_taps_;
};

}  // namespace troupe::model::cpu
