#include "model/backend/cpu/phase_channels.h"

namespace troupe::model::cpu {
namespace {

// Phases of fewer channels do not fill a block of products, and leaving some out saves no time.
constexpr std::int64_t kFewestChannels = 4;

// Adds channels that are the next ones, or stand behind some that are left out.
void append(std::vector<PhaseChannels::Range>& ranges, const PhaseChannels::Range& next) {
  if (!ranges.empty() && ranges.back().first + ranges.back().count == next.first) {
    ranges.back().count += next.count;
  } else {
    ranges.push_back(next);
  }
}

}  // namespace

PhaseChannels::PhaseChannels(const ConvolutionGeometry& g, std::int64_t channels, bool tiles,
                             std::int64_t in_pair)
    : kernel_(g.kernel) {
  const std::int64_t of_phase = channels / cells(g.phases);
  const bool apart = of_phase >= kFewestChannels && of_phase % in_pair == 0;
  for (std::int64_t phase = 0; phase < cells(g.phases); ++phase) {
    const Extent place{phase / (g.phases[1] * g.phases[2]), phase / g.phases[2] % g.phases[1],
                       phase % g.phases[2]};
    std::size_t lacks = 0;
    for (std::size_t axis = 0; axis < (tiles ? 2 : 3) && apart; ++axis) {
      if (place[axis] >= g.whole_phases[axis]) lacks |= std::size_t{1} << axis;
    }
    if (!groups_.empty() && groups_.back().lacks == lacks) {
      groups_.back().channels.count += of_phase;
    } else {
      groups_.push_back({{phase * of_phase, of_phase}, lacks});
    }
  }
  for (std::size_t last = 0; last < of_taps_.size(); ++last) {
    for (const Group& group : groups_) {
      if (group.has(last)) append(of_taps_[last], group.channels);
    }
  }
}

std::size_t PhaseChannels::last(const Extent& tap) const {
  std::size_t last = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (tap[axis] == kernel_[axis] - 1) last |= std::size_t{1} << axis;
  }
  return last;
}

}  // namespace troupe::model::cpu
