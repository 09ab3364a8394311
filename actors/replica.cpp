#include "actors/replica.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace troupe::actors {
namespace {

using runtime::Buffer;
using runtime::Context;
using runtime::Message;
using runtime::TimePoint;

double seconds(runtime::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

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

Replica::Replica(ReplicaOptions options, TrainingContext training)
    : options_(options), training_(training) {}

void Replica::start(Context& context) {
  training_.backend.prepare_thread();
  team_ = std::make_unique<runtime::ThreadTeam>(
      options_.threads, [&backend = training_.backend] { backend.prepare_thread(); });
  if (team_->threads() < options_.threads) {
    context.log().warning(
        fmt::format("the system gave {} of actors.replica.threads = {} threads; "
                    "going on with these (see ulimit -u and -v)",
                    team_->threads(), options_.threads));
  }
  share_ = std::make_unique<pipeline::IterationShare>(training_.gan, training_.options, *team_);
  contributions_.port = context.out("contributions");
  snapshots_.port = context.out("snapshots");
  validations_.port = context.out("validation");
  metrics_ = context.out("metrics");
}

void Replica::begin(Context& context, const StatePointer& state) {
  CHECK(phase_ == Phase::kAwaiting, "training begins once");
  state_ = *state;
  first_iteration_ = state_.iteration;
  state_hash_ = pipeline::hash_of_state(state_);
  phase_ = Phase::kGathering;
  lap_ = context.now();
}

void Replica::receive(Context& context, Message message) {
  if (phase_ == Phase::kEnded) {
    // With its credit: else the loader would go on reading, for nobody, as fast as it can.
    if (message.as<BatchMessage>() != nullptr) ahead_.push_back(std::move(message));
    return;
  }
  if (const auto* beginning = message.as<BeginTraining>()) {
    begin(context, beginning->state);
  } else if (message.as<BatchMessage>() != nullptr) {
    ahead_.push_back(std::move(message));
  } else if (const auto* bucket = message.as<BucketMessage>()) {
    take_bucket(context, *bucket, message.payloads().front());
    return;
  } else if (const auto* header = message.as<HeaderMessage>()) {
    take_header(context, header->header);
  } else if (const auto* ending = message.as<EndOfData>()) {
    last_iteration_ = ending->iterations;
  } else if (message.as<StopTraining>() != nullptr) {
    end(context, std::nullopt);
    return;
  } else if (message.as<CheckpointRequest>() != nullptr) {
    checkpoint_requested_ = true;
    return;
  }
  schedule(context);
}

void Replica::credit_returned(Context& context, std::string_view) { schedule(context); }

void Replica::timer(Context& context, runtime::TimerId) {
  turn_ = {};
  if (phase_ != Phase::kEnded) turn(context);
}

// Of snapshots that nobody looks at any more when the run is being stopped.
void Replica::undeliverable(Context& context, Message message, const runtime::Error& cause) {
  if (phase_ != Phase::kEnded) Actor::undeliverable(context, std::move(message), cause);
}

void Replica::schedule(Context& context) {
  if (turn_.number == 0 && phase_ != Phase::kEnded) turn_ = context.after(runtime::Duration{0});
}

// Seconds since the last lap; what they were spent on is the caller's to say.
double Replica::lap(Context& context) {
  const TimePoint now = context.now();
  return seconds(now - std::exchange(lap_, now));
}

void Replica::turn(Context& context) {
  // Snapshots go first: a full disk link holds training back rather than growing a queue.
  if (!flush(context, snapshots_) || !flush(context, validations_)) return;
  if (!flush(context, contributions_)) return;
  switch (phase_) {
    case Phase::kAwaiting:
      break;
    case Phase::kGathering:
      gather(context);
      break;
    case Phase::kComputing:
      if (share_->compute(state_, state_.slot)) {
        context.post_progress();
        schedule(context);
      } else {
        compute_seconds_ += lap(context);
        contribute(context, 0, state_.scales[state_.slot]);
      }
      break;
    case Phase::kReducing:
      if (prepare_next()) schedule(context);
      break;
    case Phase::kEnded:
      break;
  }
}

void Replica::gather(Context& context) {
  if (last_iteration_ && state_.iteration >= *last_iteration_) {
    end(context, std::nullopt);
    return;
  }
  if (ahead_.size() < options_.micro_batches) return;
  // One without micro-batches needs nothing of the loader but the end.
  if (options_.micro_batches == 0 && !last_iteration_) return;
  std::vector<pipeline::MicroBatch> micro_batches;
  in_use_.clear();
  for (std::uint32_t i = 0; i < options_.micro_batches; ++i) {
    in_use_.push_back(std::move(ahead_.front()));
    ahead_.pop_front();
    const auto* body = in_use_.back().as<BatchMessage>();
    CHECK(body->iteration == state_.iteration, "the loader feeds iterations in order");
    micro_batches.push_back({body->micro_batch, batch_of(*body, in_use_.back().payloads())});
  }
  share_->begin(state_.iteration, std::move(micro_batches));
  load_seconds_ += lap(context);
  phase_ = Phase::kComputing;
  schedule(context);
}

void Replica::contribute(Context& context, std::uint32_t attempt,
                         std::vector<std::int16_t> scales) {
  pipeline::Contribution part = share_->contribution(state_.slot, attempt, scales, state_hash_);
  const model::ContributionLayout& layout =
      training_.gan.contributions(training_.options.schedule[state_.slot]);
  const std::uint64_t step = part.header.step;
  record_.scales = std::move(scales);
  record_.sums = Buffer::allocate(part.sums.size());
  std::uint32_t number = 0;
  constexpr std::size_t kElement = sizeof(std::int64_t);
  for (const auto& [offset, size] : pipeline::make_buckets(layout.size, options_.segment_bytes)) {
    Buffer slice = part.sums.slice(static_cast<std::size_t>(offset) * kElement,
                                   static_cast<std::size_t>(size) * kElement);
    contributions_.messages.push_back(Message::of(
        BucketMessage{step, attempt, number++, offset, offset + size}, {std::move(slice)}));
  }
  contributions_.messages.push_back(Message::of(HeaderMessage{std::move(part.header)}));
  phase_ = Phase::kReducing;
  compute_seconds_ += lap(context);
  schedule(context);
}

// Computes ahead for the next step what the step in flight cannot change.
bool Replica::prepare_next() {
  const auto& schedule = training_.options.schedule;
  const std::uint32_t next = state_.slot + 1;
  if (next >= schedule.size()) return false;
  const auto needs = model::slot_access(schedule[next]).prepare_reads;
  const auto changes = model::slot_access(schedule[state_.slot]).writes;
  return (needs & changes) == 0 && share_->prepare(state_, next);
}

void Replica::take_bucket(Context& context, const BucketMessage& body, const Buffer& sums) {
  constexpr auto kElement = static_cast<std::int64_t>(sizeof(std::int64_t));
  const std::uint64_t step = state_.step(training_.options.schedule.size());
  if (body.step != step || body.end > static_cast<std::int64_t>(record_.sums.size()) / kElement) {
    context.fail({runtime::ErrorKind::kLostPeers,
                  fmt::format("the reducer sent elements {} to {} of step {} while step {} is "
                              "reduced; its node does not do what the others do",
                              body.begin, body.end, body.step, step)});
    return;
  }
  std::memcpy(
      record_.sums.mutable_data() + static_cast<std::size_t>(body.begin) * sizeof(std::int64_t),
      sums.data(), sums.size());
}

void Replica::take_header(Context& context, const pipeline::StepHeader& header) {
  const auto& schedule = training_.options.schedule;
  record_.header = header;
  const pipeline::Verdict verdict =
      pipeline::judge(header, training_.gan.contributions(schedule[state_.slot]),
                      static_cast<std::uint32_t>(schedule.size()));
  reduce_seconds_ += lap(context);
  if (const auto* diverged = std::get_if<pipeline::Diverged>(&verdict)) {
    end(context, diverged->error);
  } else if (std::holds_alternative<pipeline::Retry>(verdict)) {
    contribute(context, header.attempt + 1,
               pipeline::scales_for_attempt(state_.scales[state_.slot], header,
                                            training_.options.micro_batches));
  } else {
    commit(context);
  }
}

void Replica::commit(Context& context) {
  StepMetrics metrics;
  metrics.step = record_.header.step;
  metrics.epoch = state_.epoch;
  metrics.iteration = state_.iteration;
  metrics.slot = state_.slot;
  metrics.attempts = record_.header.attempt + 1;
  metrics.events = record_.header.events;
  metrics.state_hash = state_hash_;
  const auto slot = training_.options.schedule[state_.slot];
  metrics.losses =
      pipeline::step_losses(training_.gan.description(), training_.gan.contributions(slot), record_,
                            training_.options.micro_batches);
  const auto applied = pipeline::apply(training_.gan, training_.options, record_, state_);
  state_hash_ = pipeline::hash_of_state(state_);
  metrics.load_seconds = std::exchange(load_seconds_, 0.0);
  metrics.compute_seconds = std::exchange(compute_seconds_, 0.0);
  metrics.reduce_seconds = std::exchange(reduce_seconds_, 0.0);
  metrics.apply_seconds = lap(context);
  const bool epoch_ended = state_.epoch != metrics.epoch;
  last_step_ = std::move(metrics);
  if (metrics_.valid() && options_.replica == 0) {
    context.send(metrics_, Message::of(StepMetrics(*last_step_)));
  }
  if (!applied.ok()) {
    end(context, applied.error());
    return;
  }
  after_commit(context, epoch_ended);
}

void Replica::after_commit(Context& context, bool epoch_ended) {
  if (options_.replica == 0) {
    const bool asked = std::exchange(checkpoint_requested_, false);
    const auto due = [&](const config::Every& every) {
      return state_.slot == 0 && every.due(state_.iteration, state_.epoch, epoch_ended);
    };
    if (asked || due(options_.checkpoint)) snapshot(snapshots_);
    if (due(options_.validation)) snapshot(validations_);
  }
  phase_ = Phase::kComputing;
  if (state_.slot == 0) {
    if (state_.iteration == first_iteration_ + 1) timed_from_ = context.now();
    if (state_.iteration > first_iteration_ + 1) timed_events_ += record_.header.events;
    timed_to_ = context.now();
    in_use_.clear();
    phase_ = Phase::kGathering;
  }
  schedule(context);
}

void Replica::snapshot(Outbox& outbox) {
  if (!outbox.port.valid()) return;
  outbox.messages.push_back(
      Message::of(Snapshot{std::make_shared<const pipeline::TrainingState>(state_)}));
}

bool Replica::flush(Context& context, Outbox& outbox) {
  while (!outbox.messages.empty()) {
    if (!context.send(outbox.port, outbox.messages.front())) return false;
    outbox.messages.pop_front();
    ++outbox.sent;
  }
  return true;
}

void Replica::end(Context& context, std::optional<runtime::Error> error) {
  const bool began = phase_ != Phase::kAwaiting;
  phase_ = Phase::kEnded;
  ReplicaEnd body;
  body.replica = options_.replica;
  if (began) body.state = std::make_shared<const pipeline::TrainingState>(std::move(state_));
  body.error = std::move(error);
  body.seconds = timed_to_ > timed_from_ ? seconds(timed_to_ - timed_from_) : 0.0;
  body.timed_events = timed_events_;
  body.last_step = std::move(last_step_);
  body.validations = validations_.sent;
  context.send_control("coordinator", Message::of(std::move(body)));
}

std::string Replica::waiting_for() const {
  const std::string step = fmt::format("iteration {} slot {}", state_.iteration, state_.slot);
  switch (phase_) {
    case Phase::kAwaiting:
      return "the beginning of training";
    case Phase::kGathering:
      return fmt::format("micro-batches of iteration {}: {} of {} are here", state_.iteration,
                         ahead_.size(), options_.micro_batches);
    case Phase::kComputing:
      return snapshots_.messages.empty() && validations_.messages.empty()
                 ? "its own turn at " + step
                 : "room for a snapshot after " + step;
    case Phase::kReducing:
      return "the sum of " + step;
    case Phase::kEnded:
      return "its end";
  }
  return {};
}

}  // namespace troupe::actors
