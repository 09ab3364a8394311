#include "actors/iteration_feed.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace troupe::actors {

using pipeline::IterationShare;
using runtime::Buffer;
using runtime::Error;
using runtime::Message;
using runtime::Result;

namespace {

pipeline::Batch batch_of(const BatchMessage& body, std::span<const Buffer> payloads) {
  CHECK(payloads.size() == 3, "a batch has images, conditions and event ids");
  pipeline::Batch batch;
  batch.events = body.events;
  batch.images = payloads[0];
  batch.conditions = payloads[1];
  batch.event_ids = payloads[2];
  return batch;
}

}  // namespace

void Batches::expect(std::uint32_t feed, std::size_t missing, std::size_t most) {
  feed_ = feed;
  missing_ = missing;
  most_ = most;
  gathered_.clear();
  waiting_.clear();
}

void Batches::take(Message message) {
  if (message.as<BatchMessage>()->feed != feed_) return;
  waiting_.push_back(std::move(message));
  gather();
}

void Batches::note_in_use(std::size_t count) {
  in_use_ = count;
  gather();
}

// A gathered batch has given its credit back, so that more are read. Missing ones are taken beyond
// the bound, because nothing else is computed before they are here.
void Batches::gather() {
  while (!waiting_.empty() && (missing_ > 0 || in_use_ + gathered_.size() < most_)) {
    if (missing_ > 0) --missing_;
    gathered_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    gathered_.back().release_credit();
  }
}

runtime::Result<Batches::Next> Batches::next(std::uint64_t iteration,
                                             std::span<const std::uint32_t> indices) {
  if (gathered_.size() < indices.size()) return Next();
  std::vector<pipeline::MicroBatch> micro_batches;
  for (const std::uint32_t index : indices) {
    const auto* body = gathered_.front().as<BatchMessage>();
    if (body->iteration != iteration || body->micro_batch != index) {
      return runtime::Error{
          runtime::ErrorKind::kLostPeers,
          fmt::format("the loader sent micro-batch {} of iteration {} where {} of {} was to come",
                      body->micro_batch, body->iteration, index, iteration)};
    }
    micro_batches.push_back({body->micro_batch, batch_of(*body, gathered_.front().payloads())});
    gathered_.pop_front();
  }
  return Next(std::move(micro_batches));
}

// The iterations under way may have got micro-batches of members that are lost. These alone are
// asked for at once, and until they are here nothing else is computed (take_over).
Feed IterationFeed::enter(ViewPointer view, std::uint64_t iteration, std::vector<Share> in_flight) {
  view_ = std::move(view);
  Feed feed;
  feed.replica = options_.replica;
  feed.number = ++feed_;
  feed.view = view_;
  feed.iteration = iteration;
  incomplete_.clear();
  std::size_t missing_count = 0;
  // The newest iteration may be the last of those in flight already.
  if (newest_ != nullptr && newest_->iteration() >= iteration) in_flight.push_back(newest_);
  in_flight.erase(std::unique(in_flight.begin(), in_flight.end()), in_flight.end());
  for (const Share& share : in_flight) {
    std::vector<std::uint32_t> missing = work_in(share->iteration()).own;
    std::erase_if(missing, [&](std::uint32_t index) { return share->has(index); });
    share->take_over({});
    if (!missing.empty()) {
      incomplete_.push_back({share, missing});
      feed.missing.push_back({share->iteration(), missing});
      missing_count += missing.size();
    }
    feed.iteration = share->iteration() + 1;
  }
  batches_.expect(feed_, missing_count, most_own() + 1);
  batches_.note_in_use(newest_ == nullptr ? 0 : newest_->with_events());
  return feed;
}

pipeline::ReplicaWork IterationFeed::work_in(std::uint64_t iteration) const {
  return pipeline::work_of(*view_, options_.checks, iteration, options_.replica);
}

bool IterationFeed::is_idle_from(std::uint64_t iteration) const {
  const auto has_some = [&](const std::vector<std::uint32_t>& owners) {
    return std::ranges::count(owners, options_.replica) > 0;
  };
  return !has_some(view_->owners_in(iteration)) &&
         std::ranges::none_of(view_->later, [&](const pipeline::View::Assignment& assignment) {
           return assignment.from > iteration && has_some(assignment.owners);
         });
}

std::size_t IterationFeed::most_own() const {
  const auto own = [&](const std::vector<std::uint32_t>& owners) {
    return static_cast<std::size_t>(std::ranges::count(owners, options_.replica));
  };
  std::size_t most = own(view_->owners);
  for (const pipeline::View::Assignment& assignment : view_->later) {
    most = std::max(most, own(assignment.owners));
  }
  return most;
}

Result<IterationFeed::Share> IterationFeed::take_over() {
  if (incomplete_.empty()) return Share();
  const auto& [share, missing] = incomplete_.front();
  ASSIGN_OR_RETURN(Batches::Next micro_batches, next(share->iteration(), missing));
  if (!micro_batches) return Share();
  const Share whole = share;
  whole->take_over(std::move(*micro_batches));
  if (whole == newest_) batches_.note_in_use(whole->with_events());
  incomplete_.pop_front();
  return whole;
}

Result<IterationFeed::Share> IterationFeed::begin(std::uint64_t iteration) {
  if (newest_ != nullptr && newest_->iteration() == iteration) return newest_;
  if (!end_ || iteration >= *end_) return Share();
  const pipeline::ReplicaWork work = work_in(iteration);
  ASSIGN_OR_RETURN(Batches::Next micro_batches, next(iteration, work.micro_batches()));
  if (!micro_batches) return Share();
  newest_ = std::make_shared<IterationShare>(iteration, std::move(*micro_batches), work.check,
                                             work.is_witness);
  batches_.note_in_use(newest_->with_events());
  return newest_;
}

void IterationFeed::release_events(IterationShare& share, std::size_t count) {
  share.release_events(count);
  if (&share == newest_.get()) batches_.note_in_use(share.with_events());
}

// The loader may be on another node, which may send anything.
Result<Batches::Next> IterationFeed::next(std::uint64_t iteration,
                                          std::span<const std::uint32_t> indices) {
  ASSIGN_OR_RETURN(Batches::Next micro_batches, batches_.next(iteration, indices));
  const auto fits = [&](const pipeline::MicroBatch& each) { return is_of_model(each.events); };
  if (!micro_batches || std::ranges::all_of(*micro_batches, fits)) return micro_batches;
  return Error{runtime::ErrorKind::kLostPeers,
               fmt::format("the loader sent micro-batches of iteration {} that are of another "
                           "model; its node does not do what the others do",
                           iteration)};
}

bool IterationFeed::is_of_model(const pipeline::Batch& batch) const {
  const std::size_t events = options_.events;
  return batch.events == events && batch.images.size() == events * options_.cells * sizeof(float) &&
         batch.conditions.size() == events * (3 + options_.columns) * sizeof(float) &&
         batch.event_ids.size() == events * sizeof(std::uint64_t);
}

std::string IterationFeed::waiting_for(std::uint64_t iteration) const {
  if (incomplete_.empty()) {
    return fmt::format("micro-batches of iteration {}: {} of {} are here", iteration, ahead(),
                       owned_in(iteration));
  }
  return fmt::format("{} micro-batches of iteration {} that were another member's: {} are here",
                     incomplete_.front().missing.size(), incomplete_.front().share->iteration(),
                     ahead());
}

}  // namespace troupe::actors
