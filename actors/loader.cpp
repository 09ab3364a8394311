#include "actors/loader.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "pipeline/steps/view.h"

namespace troupe::actors {

using runtime::Context;
using runtime::Message;

namespace {

std::string port_name(std::uint32_t replica) { return fmt::format("batches.{}", replica); }

}  // namespace

Loader::Loader(LoaderOptions options, pipeline::Dataset& dataset, pipeline::Sampler& sampler)
    : options_(std::move(options)), dataset_(dataset), sampler_(sampler) {
  ids_.resize(sampler.options().micro_batch / sampler.options().parts);
  if (options_.most_threads > 0) {
    threads_.emplace(options_.most_threads);
    dataset_.set_threads(threads_->threads());
  }
}

void Loader::start(Context& context) {
  on<Feed>(&Loader::receive_feed);
  samples_.start(context);
}

void Loader::receive_feed(Context& context, const Feed& feed, Message& message) {
  if (const char* const fault = fault_of(context, feed, message.sender_name())) {
    context.log().warning(fmt::format("{} asks for {}: refused", message.sender_name(), fault));
    return;
  }
  begin(context, feed);
}

const char* Loader::fault_of(Context& context, const Feed& feed, std::string_view sender) const {
  if (sender != replica_name(feed.replica)) return "what another replica is to be fed";
  if (!context.out(port_name(feed.replica)).valid()) return "what another loader is to feed it";
  const pipeline::View& view = *feed.view;
  if (!view.has(options_.checks.member_of(feed.replica))) return "micro-batches of no View";
  if (!view.shares_out(sampler_.options().micro_batches * sampler_.options().parts,
                       options_.checks.replicas_per_member)) {
    return "micro-batches of another View";
  }
  const auto exists = [&](const Feed::Missing& each) {
    const std::uint32_t count = sampler_.parts_in(each.iteration);
    return each.iteration < options_.iterations &&
           std::ranges::all_of(each.micro_batches, [&](std::uint32_t i) { return i < count; });
  };
  return std::ranges::all_of(feed.missing, exists) ? nullptr : "micro-batches that there are not";
}

void Loader::begin(Context& context, const Feed& feed) {
  fed_ = true;
  samples_.note_members(feed.view->ring.size());
  Line line;
  line.port = context.out(port_name(feed.replica));
  line.replica = feed.replica;
  line.feed = feed.number;
  for (const Feed::Missing& each : feed.missing) {
    for (const std::uint32_t index : each.micro_batches) {
      line.missing.push_back({each.iteration, index});
    }
  }
  line.view = feed.view;
  begin_iteration(line, feed.iteration);
  if (options_.most_ahead > 0) {
    const auto ahead = ahead_.try_emplace(feed.replica, options_.most_ahead).first;
    context.use_credits(line.port, ahead->second.micro_batches());
  }
  front_ = reads_ahead_ = 0;
  // The replica's earlier feed ends here, and with it the message that may wait in it.
  lines_[feed.replica] = std::move(line);
  schedule(context);
}

void Loader::credit_returned(Context& context, std::string_view) { schedule(context); }

// A turn reads one micro-batch per replica, so that no replica waits while another is filled up,
// and a stop is heard between turns.
void Loader::timer(Context& context, runtime::TimerId) {
  turn_ = {};
  if (waits_since_) note_pace(context, {}, context.now() - *waits_since_);
  waits_since_.reset();
  bool moved = false;
  for (auto& [replica, line] : lines_) moved |= advance(context, line);
  std::erase_if(lines_, [&](const auto& each) { return has_ended(each.second); });
  if (lines_.empty()) samples_.tell_all(context);
  if (moved) {
    schedule(context);
  } else {
    waits_since_ = context.now();
  }
}

void Loader::note_pace(Context& context, runtime::Duration reading, runtime::Duration waiting) {
  const auto seconds = [](runtime::Duration time) {
    return std::chrono::duration<double>(time).count();
  };
  if (!threads_ || !threads_->note(seconds(reading), seconds(waiting))) return;
  dataset_.set_threads(threads_->threads());
  context.log().debug(fmt::format("reads with {} threads", threads_->threads()));
}

void Loader::note_ready(Context& context, const Line& line, std::int64_t before) {
  const auto ahead = ahead_.find(line.replica);
  if (ahead == ahead_.end() || before == 0 || context.in_flight(line.port) > 0) return;
  if (!ahead->second.note_used_up()) return;
  const std::int64_t far = ahead->second.micro_batches();
  context.use_credits(line.port, far);
  context.log().debug(
      fmt::format("reads {} micro-batches ahead of {}", far, replica_name(line.replica)));
}

// A message that comes back returns its credit, so without this everything would be read for
// nobody.
void Loader::undeliverable(Context&, Message message, const runtime::Error&) {
  const auto* batch = message.as<BatchMessage>();
  if (batch == nullptr) return;
  const auto line = lines_.find(batch->replica);
  if (line != lines_.end() && line->second.feed == batch->feed) lines_.erase(line);
}

void Loader::schedule(Context& context) {
  if (turn_.number == 0) turn_ = context.after(runtime::Duration{0});
}

// Whether this iteration or a later one may have something for the replica.
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

std::vector<std::uint32_t> Loader::micro_batches_in(const Line& line,
                                                    std::uint64_t iteration) const {
  return pipeline::work_of(*line.view, options_.checks, iteration, line.replica).micro_batches();
}

// Each look reads twice as far as the one before, a part with each micro-batch that is known
// already. So no replica waits for all of it, not even where another View has moved it here. What
// is over is not wanted any more.
runtime::Result<void> Loader::look_ahead() {
  const std::uint64_t most = dataset_.most_wanted();
  if (most == 0) return {};
  if (reads_ahead_ > 0) {
    --reads_ahead_;
    return {};
  }
  std::uint64_t iteration = options_.iterations;
  for (const auto& [replica, line] : lines_) iteration = std::min(iteration, line.iteration);
  std::vector<std::uint64_t> ids;
  for (; iteration < options_.iterations && ids.size() < most; ++iteration) {
    bool is_last = true;
    for (const auto& [replica, line] : lines_) {
      is_last = is_last && !has_more(line, iteration);
      if (iteration < line.iteration) continue;
      auto coming = micro_batches_in(line, iteration);
      if (iteration == line.iteration) {
        coming.erase(coming.begin(), coming.begin() + static_cast<std::ptrdiff_t>(line.next));
      }
      for (const std::uint32_t index : coming) {
        sampler_.event_ids(iteration, index, ids_);
        ids.insert(ids.end(), ids_.begin(), ids_.end());
      }
    }
    if (is_last) break;
  }
  ids.resize(std::min<std::uint64_t>(ids.size(), most));
  const std::size_t known = front_ == 0 ? 0 : front_ - front_ / 2 - 1;
  const std::size_t all = (ids.size() + ids_.size() - 1) / ids_.size();
  front_ = std::min(all, std::max<std::size_t>(1, 2 * front_));
  reads_ahead_ = front_ / 2;
  return dataset_.want(ids, std::min(ids.size(), front_ * ids_.size()), known);
}

// Goes to the first iteration, not before this one, that has something for the replica.
void Loader::begin_iteration(Line& line, std::uint64_t iteration) const {
  line.next = 0;
  if (!has_more(line, iteration)) iteration = options_.iterations;
  for (line.iteration = iteration; line.iteration < options_.iterations; ++line.iteration) {
    line.micro_batches = micro_batches_in(line, line.iteration);
    if (!line.micro_batches.empty()) return;
  }
}

bool Loader::has_ended(const Line& line) const {
  return line.told_end && line.iteration >= options_.iterations && line.missing.empty();
}

// Reads the line's next message, unless one waits, and sends it if there is credit. One that cannot
// be sent stays in `waiting`, and the line moves on only when it is sent, so that nothing is read
// twice.
bool Loader::advance(Context& context, Line& line) {
  if (has_ended(line)) return false;
  if (line.waiting.empty()) {
    const runtime::TimePoint start = context.now();
    const std::int64_t ready = context.in_flight(line.port);
    auto message = read(line);
    note_pace(context, context.now() - start, {});
    note_ready(context, line, ready);
    if (message.ok() && line.told_end) {
      samples_.add(context, "read_seconds",
                   std::chrono::duration<double>(context.now() - start).count());
      samples_.tell(context);
    }
    if (!message.ok()) {
      context.fail(message.error());
      return false;
    }
    line.waiting = std::move(message).value();
  }
  if (!context.send(line.port, line.waiting)) {
    if (const auto ahead = ahead_.find(line.replica); ahead != ahead_.end()) {
      ahead->second.note_full();
    }
    return false;
  }
  if (!line.told_end) {
    line.told_end = true;
  } else if (!line.missing.empty()) {
    line.missing.pop_front();
  } else if (++line.next == line.micro_batches.size()) {
    begin_iteration(line, line.iteration + 1);
  }
  return true;
}

// The end of data is told first, because a replica may have no micro-batches that it could follow.
runtime::Result<Message> Loader::read(const Line& line) {
  if (!line.told_end) return Message::of(EndOfData{options_.iterations});
  if (!line.missing.empty()) return read(line, line.missing.front());
  return read(line, {line.iteration, line.micro_batches[line.next]});
}

runtime::Result<Message> Loader::read(const Line& line, const Which& which) {
  RETURN_IF_ERROR(look_ahead());
  sampler_.event_ids(which.iteration, which.micro_batch, ids_);
  pipeline::Batch batch;
  RETURN_IF_ERROR(dataset_.read(ids_, batch));
  return Message::of(
      BatchMessage{which.iteration, which.micro_batch, batch.events, line.feed, line.replica},
      {batch.images, batch.conditions, batch.event_ids});
}

std::string Loader::waiting_for() const {
  for (const auto& [replica, line] : lines_) {
    if (!line.waiting.empty()) return fmt::format("credit of replica {}", replica);
  }
  if (!fed_) return "somebody to feed";
  return "nothing: all micro-batches are sent";
}

}  // namespace troupe::actors
