#include "actors/loader.h"

#include <utility>

#include <fmt/format.h>

#include "actors/messages.h"
#include "pipeline/micro_batch.h"

namespace troupe::actors {

using runtime::Context;
using runtime::Message;

Loader::Loader(LoaderOptions options, pipeline::Dataset& dataset, pipeline::Sampler& sampler)
    : options_(std::move(options)), dataset_(dataset), sampler_(sampler) {
  ids_.resize(sampler.options().micro_batch);
}

void Loader::receive(Context& context, Message message) {
  const auto* beginning = message.as<BeginLoading>();
  if (beginning == nullptr) return;
  for (std::uint32_t i = 0; i < options_.replicas; ++i) {
    const std::uint32_t replica = options_.first_replica + i;
    Feed feed;
    feed.port = context.out(fmt::format("batches.{}", replica));
    feed.replica = replica;
    feed.own = pipeline::micro_batches_of(options_.owners, replica);
    begin_iteration(feed, beginning->iteration);
    feeds_.push_back(std::move(feed));
  }
  schedule(context);
}

void Loader::credit_returned(Context& context, std::string_view) { schedule(context); }

// One micro-batch per feed and turn, so that no replica waits while another is filled up and a stop
// is heard between turns.
void Loader::timer(Context& context, runtime::TimerId) {
  turn_ = {};
  bool moved = false;
  for (Feed& feed : feeds_) moved |= advance(context, feed);
  if (moved) schedule(context);
}

void Loader::schedule(Context& context) {
  if (turn_.number == 0) turn_ = context.after(runtime::Duration{0});
}

// Goes to the first iteration from this one on that has something for the replica.
void Loader::begin_iteration(Feed& feed, std::uint64_t iteration) const {
  feed.next = 0;
  const bool checks = options_.checks.every > 0 && options_.checks.members > 1;
  if (feed.own.empty() && !checks) iteration = options_.iterations;
  for (feed.iteration = iteration; feed.iteration < options_.iterations; ++feed.iteration) {
    feed.micro_batches = feed.own;
    const auto check = options_.checks.of(feed.iteration);
    if (check && check->witness == feed.replica) feed.micro_batches.push_back(check->micro_batch);
    if (!feed.micro_batches.empty()) return;
  }
}

bool Loader::advance(Context& context, Feed& feed) {
  if (feed.told_end && feed.iteration >= options_.iterations) return false;
  if (feed.waiting.empty()) {
    auto message = read(feed);
    if (!message.ok()) {
      context.fail(message.error());
      return false;
    }
    feed.waiting = std::move(message).value();
  }
  const bool last = feed.waiting.as<EndOfData>() != nullptr;
  if (!context.send(feed.port, feed.waiting)) return false;
  if (last) {
    feed.told_end = true;
  } else if (++feed.next == feed.micro_batches.size()) {
    begin_iteration(feed, feed.iteration + 1);
  }
  return true;
}

runtime::Result<Message> Loader::read(const Feed& feed) {
  // One that has none of its own learns where the end is from nothing else.
  if (feed.iteration >= options_.iterations || (feed.own.empty() && !feed.told_end)) {
    return Message::of(EndOfData{options_.iterations});
  }
  const std::uint32_t index = feed.micro_batches[feed.next];
  sampler_.event_ids(feed.iteration, index, ids_);
  pipeline::Batch batch;
  RETURN_IF_ERROR(dataset_.read(ids_, batch));
  return Message::of(BatchMessage{feed.iteration, index, batch.events},
                     {batch.images, batch.conditions, batch.event_ids});
}

std::string Loader::waiting_for() const {
  for (std::size_t i = 0; i < feeds_.size(); ++i) {
    if (!feeds_[i].waiting.empty()) {
      return fmt::format("credit of replica {}", options_.first_replica + i);
    }
  }
  if (feeds_.empty()) return "the beginning of training";
  return "nothing: all micro-batches are sent";
}

}  // namespace troupe::actors
