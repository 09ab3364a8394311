#pragma once

// The micro-batches that a replica's loader has sent ahead of need, in the order of the feed.
//
// Some of them are kept without their credit: as many as the iterations under way do not read any
// more. So the next iteration gathers while this one is made, however little the link has room for.
// What is beyond that waits with its credit. One thread.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/steps/iteration_share.h"
#include "runtime/base/error.h"
#include "runtime/message.h"

namespace troupe::actors {

class Batches {
 public:
  // From now on only what belongs to this feed counts; everything else is dropped. `missing`
  // micro-batches come first, and then up to `most` in an iteration.
  void expect(std::uint32_t feed, std::size_t missing, std::size_t most);
  // A BatchMessage.
  void take(runtime::Message message);
  // So many micro-batches of the iterations under way still hold their events.
  void note_in_use(std::size_t count);

  // The next micro-batches, which have to be these of this iteration; nothing when not all are
  // here. An Error (kLostPeers) when others are here: the loader may be on another node.
  using Next = std::optional<std::vector<pipeline::MicroBatch>>;
  runtime::Result<Next> next(std::uint64_t iteration, std::span<const std::uint32_t> indices);
  std::size_t ahead() const { return gathered_.size() + waiting_.size(); }

 private:
  void gather();

  std::uint32_t feed_ = 0;
  std::size_t missing_ = 0;  // how many of those that come first are not here yet
  std::size_t most_ = 0;
  std::size_t in_use_ = 0;
  std::deque<runtime::Message> gathered_;  // without their credit
  std::deque<runtime::Message> waiting_;   // with it, behind these
};

}  // namespace troupe::actors
