#pragma once

// The micro-batches of one replica: which are its own in a View, which of them its loader has sent,
// and the shares of the iterations under way that are made of them. One thread.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "pipeline/steps/iteration_share.h"
#include "pipeline/steps/spot_check.h"
#include "pipeline/steps/view.h"
#include "runtime/base/error.h"
#include "runtime/message.h"

namespace troupe::actors {

struct IterationFeedOptions {
  std::uint32_t replica = 0;
  pipeline::SpotChecks checks;  // members and owners come from each View
  std::size_t events = 1;       // of a micro-batch
  std::size_t cells = 1;        // of an image
  std::size_t columns = 0;      // of the data, besides energy, angle and ecal
  // Its feeds count on from here: what was sent to an earlier process of the member is
  // for none of them.
  std::uint32_t feeds_before = 0;
};

// The micro-batches that a replica's loader has sent ahead of need, in the order of the feed.
//
// Some of them are kept without their credit: as many as the iterations under way do not read any
// more. So the next iteration gathers while this one is made, however little the link has room for.
// Those beyond that wait with their credit.
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

class IterationFeed {
 public:
  using Share = std::shared_ptr<pipeline::IterationShare>;

  explicit IterationFeed(IterationFeedOptions options)
      : options_(std::move(options)), feed_(options_.feeds_before) {}

  // From now on micro-batches belong to replicas as the View says; `iteration` is the one that the
  // state is at, and `in_flight` are the shares of the steps under way, in order. Returns what the
  // loader is to be asked for: the micro-batches that these and the newest share have got and lack,
  // and then all own ones from the first iteration on that was not begun.
  Feed enter(ViewPointer view, std::uint64_t iteration, std::vector<Share> in_flight);
  // Before enter(): of the iterations that it has begun nothing is kept, so that all of them are
  // asked for anew.
  void begin_anew() { newest_.reset(); }
  // How many micro-batches of the iteration are this replica's.
  std::size_t owned_in(std::uint64_t iteration) const { return work_in(iteration).own.size(); }

  // It has none in this iteration, nor in a later one, as long as the View lasts.
  bool is_idle_from(std::uint64_t iteration) const;

  // A BatchMessage.
  void take(runtime::Message message) { batches_.take(std::move(message)); }
  // The loader has told how many iterations the run has.
  void set_end(std::uint64_t iterations) { end_ = iterations; }
  bool has_ended(std::uint64_t iteration) const { return end_ && iteration >= *end_; }

  // A share that was lacking micro-batches and has them now; null: there is none, or it still lacks
  // some (is_whole() tells). An Error (kLostPeers): the loader has sent what cannot be right.
  runtime::Result<Share> take_over();
  bool is_whole() const { return incomplete_.empty(); }
  // The share of an iteration, which is begun when all its micro-batches are here. Null: they are
  // not, or the run has no such iteration. Errors as above.
  runtime::Result<Share> begin(std::uint64_t iteration);
  // The events of the share's first `count` micro-batches will not be read any more.
  void release_events(pipeline::IterationShare& share, std::size_t count);

  std::size_t ahead() const { return batches_.ahead(); }  // micro-batches that wait
  // The missing things, for people, with the state at this iteration.
  std::string waiting_for(std::uint64_t iteration) const;

 private:
  struct Incomplete {
    Share share;
    std::vector<std::uint32_t> missing;
  };
  pipeline::ReplicaWork work_in(std::uint64_t iteration) const;
  std::size_t most_own() const;  // in any iteration of the View
  runtime::Result<Batches::Next> next(std::uint64_t iteration,
                                      std::span<const std::uint32_t> indices);
  bool is_of_model(const pipeline::Batch& batch) const;

  IterationFeedOptions options_;
  ViewPointer view_;
  std::uint32_t feed_;
  Batches batches_;
  Share newest_;                       // of the newest iteration that was begun
  std::deque<Incomplete> incomplete_;  // shares that lack micro-batches taken over; in order
  std::optional<std::uint64_t> end_;   // iterations of the run
};

}  // namespace troupe::actors
