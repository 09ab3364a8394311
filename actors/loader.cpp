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
    feed.micro_batches = pipeline::micro_batches_of(options_.owners, replica);
    feed.iteration = beginning->iteration;
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

bool Loader::advance(Context& context, Feed& feed) {
  if (feed.ended) return false;
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
    feed.ended = true;
  } else if (++feed.next == feed.micro_batches.size()) {
    feed.next = 0;
    ++feed.iteration;
  }
  return true;
}

runtime::Result<Message> Loader::read(const Feed& feed) {
  if (feed.iteration >= options_.iterations || feed.micro_batches.empty()) {
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
