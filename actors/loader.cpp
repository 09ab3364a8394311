#include "actors/loader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pipeline/micro_batch.h"

namespace troupe::actors {

using runtime::Context;
using runtime::Message;

Loader::Loader(LoaderOptions options, pipeline::Dataset& dataset, pipeline::Sampler& sampler)
    : options_(std::move(options)), dataset_(dataset), sampler_(sampler) {
  ids_.resize(sampler.options().micro_batch);
}

void Loader::receive(Context& context, Message message) {
  if (const auto* feed = message.as<Feed>()) begin(context, *feed);
}

void Loader::begin(Context& context, const Feed& feed) {
  Line line;
  line.port = context.out(fmt::format("batches.{}", feed.replica));
  line.replica = feed.replica;
  line.feed = feed.number;
  line.missing.assign(feed.missing.begin(), feed.missing.end());
  line.view = feed.view;
  begin_iteration(line, feed.iteration);
  lines_[feed.replica] = std::move(line);
  schedule(context);
}

void Loader::credit_returned(Context& context, std::string_view) { schedule(context); }

// One micro-batch per replica and turn, so that none waits while another is filled up and a stop is
// heard between turns.
void Loader::timer(Context& context, runtime::TimerId) {
  turn_ = {};
  bool moved = false;
  for (auto& [replica, line] : lines_) moved |= advance(context, line);
  if (moved) schedule(context);
}

void Loader::schedule(Context& context) {
  if (turn_.number == 0) turn_ = context.after(runtime::Duration{0});
}

// Whether there may be anything for the replica from this iteration on.
bool Loader::has_more(const Line& line, std::uint64_t iteration) const {
  if (options_.checks.every > 0 && line.view->ring.size() > 1) return true;
  const auto owns = [&](const std::vector<std::uint32_t>& owners) {
    return std::find(owners.begin(), owners.end(), line.replica) != owners.end();
  };
  return owns(line.view->owners_in(iteration)) ||
         std::any_of(line.view->later.begin(), line.view->later.end(), [&](const auto& assignment) {
           return assignment.from > iteration && owns(assignment.owners);
         });
}

// Goes to the first iteration from this one on that has something for the replica.
void Loader::begin_iteration(Line& line, std::uint64_t iteration) const {
  line.next = 0;
  if (!has_more(line, iteration)) iteration = options_.iterations;
  for (line.iteration = iteration; line.iteration < options_.iterations; ++line.iteration) {
    line.micro_batches =
        pipeline::micro_batches_of(line.view->owners_in(line.iteration), line.replica);
    const auto check = line.view->checks(options_.checks, line.iteration).of(line.iteration);
    if (check && check->witness == line.replica) line.micro_batches.push_back(check->micro_batch);
    if (!line.micro_batches.empty()) return;
  }
}

bool Loader::advance(Context& context, Line& line) {
  if (line.told_end && line.iteration >= options_.iterations && line.missing.empty()) return false;
  if (line.waiting.empty()) {
    auto message = read(line);
    if (!message.ok()) {
      context.fail(message.error());
      return false;
    }
    line.waiting = std::move(message).value();
  }
  if (!context.send(line.port, line.waiting)) return false;
  if (!line.told_end) {
    line.told_end = true;
  } else if (!line.missing.empty()) {
    line.missing.pop_front();
  } else if (++line.next == line.micro_batches.size()) {
    begin_iteration(line, line.iteration + 1);
  }
  return true;
}

// The end comes first: a replica may have nothing of its own that it could stand behind.
runtime::Result<Message> Loader::read(const Line& line) {
  if (!line.told_end) return Message::of(EndOfData{options_.iterations});
  if (!line.missing.empty()) return read(line, line.missing.front());
  return read(line, {line.iteration, line.micro_batches[line.next]});
}

runtime::Result<Message> Loader::read(const Line& line, const Feed::Missing& which) {
  sampler_.event_ids(which.iteration, which.micro_batch, ids_);
  pipeline::Batch batch;
  RETURN_IF_ERROR(dataset_.read(ids_, batch));
  return Message::of(BatchMessage{which.iteration, which.micro_batch, batch.events, line.feed},
                     {batch.images, batch.conditions, batch.event_ids});
}

std::string Loader::waiting_for() const {
  for (const auto& [replica, line] : lines_) {
    if (!line.waiting.empty()) return fmt::format("credit of replica {}", replica);
  }
  if (lines_.empty()) return "the beginning of training";
  return "nothing: all micro-batches are sent";
}

}  // namespace troupe::actors
