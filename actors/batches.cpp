#include "actors/batches.h"

#include <span>
#include <utility>

#include <fmt/format.h>

#include "actors/messages.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;
using runtime::Message;

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

}  // namespace troupe::actors
