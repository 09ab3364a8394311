#pragma once

// What a replica has of its loader: micro-batches ahead of need, in the order of the feed.
//
// As many as the iterations under way have done with are kept without their credit, so that the
// next iteration comes together while this one is made, whatever the link has room for. What is
// beyond that waits with its credit. One thread.

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
  // From now on only what belongs to this feed counts, and everything else is let go of: so many
  // that are missing come first, and then up to `most` in an iteration.
  void expect(std::uint32_t feed, std::size_t missing, std::size_t most);
  // A BatchMessage.
  void take(runtime::Message message);
  // So many micro-batches of iterations under way hold their events.
  void note_in_use(std::size_t count);

  // The next ones, which are these of this iteration; nothing when not all are here. An Error
  // (kLostPeers): others are; whoever feeds this replica may be another node.
  using Next = std::optional<std::vector<pipeline::MicroBatch>>;
  runtime::Result<Next> next(std::uint64_t iteration, std::span<const std::uint32_t> indices);
  std::size_t ahead() const { return gathered_.size() + waiting_.size(); }

 private:
  void gather();

  std::uint32_t feed_ = 0;
  std::size_t missing_ = 0;  // of those that come first, not here yet
  std::size_t most_ = 0;
  std::size_t in_use_ = 0;
  std::deque<runtime::Message> gathered_;  // without their credit
  std::deque<runtime::Message> waiting_;   // with it, behind these
};

}  // namespace troupe::actors
