#include "actors/replica.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pipeline/steps/step_ahead.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;
using runtime::Context;
using runtime::Message;
using runtime::TimePoint;

using runtime::seconds;

}  // namespace

Replica::Replica(ReplicaOptions options, TrainingContext training)
    : options_(std::move(options)), training_(training) {}

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
  computer_ = std::make_unique<pipeline::StepComputer>(training_.gan, training_.options, *team_);
  contributions_.port = context.out("contributions");
  snapshots_.port = context.out("snapshots");
  validations_.port = context.out("validation");
  metrics_ = context.out("metrics");
  samples_.start(context);
  name_spans(context);
}

void Replica::name_spans(Context& context) {
  const auto& schedule = training_.options.schedule;
  for (std::size_t slot = 0; slot < schedule.size(); ++slot) {
    const auto name = [&](const char* what) {
      return context.trace().name(
          fmt::format("{} {} {}", what, slot, model::slot_name(schedule[slot])));
    };
    spans_.push_back({name("prepare"), name("compute"), name("reduce")});
  }
}

void Replica::begin(Context& context, const StatePointer& state) {
  CHECK(phase_ == Phase::kAwaiting && view_ == nullptr, "training begins once");
  state_ = *state;
  first_iteration_ = state_.iteration;
  state_hash_ = pipeline::hash_of_state(state_);
  phase_ = Phase::kTraining;
  lap_ = context.now();
}

void Replica::receive(Context& context, Message message) {
  if (message.as<BatchMessage>() != nullptr) {
    if (message.port() != "batches") return;
    // After its end too: else the loader would go on reading, for nobody, as fast as it can.
    batches_.take(std::move(message));
    if (phase_ == Phase::kEnded) return;
  } else if (const auto* asked = message.as<TellSteps>()) {
    tell_again(context, asked->from);
    return;
  } else if (message.as<TellState>() != nullptr) {
    tell_state(context, message.sender_name());
    return;
  } else if (phase_ == Phase::kEnded) {
    // The coordinator that was told may be lost, and with it the validator that had its snapshots.
    if (const auto* change = message.as<ViewMessage>()) {
      if (view_ != nullptr && view_->id.term != change->view->id.term) end_->validations = 0;
      view_ = change->view;
      tell_end(context);
    }
    return;
  } else if (const auto* beginning = message.as<BeginTraining>()) {
    // Of a second one nothing is wanted: another member may say anything.
    if (phase_ != Phase::kAwaiting) return;
    begin(context, beginning->state);
    if (message.sender_name() != "coordinator") tell_learned(context, false);
    for (Message& lesson : std::exchange(lessons_, {})) receive(context, std::move(lesson));
  } else if (phase_ == Phase::kAwaiting && message.port() == "reduced") {
    lessons_.push_back(std::move(message));
    return;
  } else if (const auto* sharing = message.as<ShareState>()) {
    share_state(context, sharing->member);
    return;
  } else if (const auto* change = message.as<ViewMessage>()) {
    take_view(context, change->view);
  } else if (const auto* bucket = message.as<BucketMessage>()) {
    if (learns()) {
      learn(context, *bucket, message.payloads().front());
    } else {
      take_bucket(context, *bucket, message.payloads().front());
    }
    return;
  } else if (const auto* header = message.as<HeaderMessage>()) {
    if (learns()) {
      learn(context, header->header);
    } else {
      take_header(context, header->header);
    }
  } else if (const auto* ending = message.as<EndOfData>()) {
    if (message.port() == "batches") last_iteration_ = ending->iterations;
  } else if (message.as<StopTraining>() != nullptr) {
    end(context, std::nullopt);
    return;
  } else if (message.as<CheckpointRequest>() != nullptr) {
    checkpoint_requested_ = true;
    return;
  }
  schedule(context);
}

void Replica::credit_returned(Context& context, std::string_view) {
  tell_untold(context);
  schedule(context);
}

void Replica::timer(Context& context, runtime::TimerId) {
  turn_ = {};
  if (phase_ != Phase::kEnded) turn(context);
}

// Of snapshots that nobody looks at any more when the run is being stopped; and when the head is
// away the next one asks for what it lacks.
void Replica::undeliverable(Context&, Message, const runtime::Error&) {}

void Replica::schedule(Context& context) {
  if (turn_.number == 0 && phase_ != Phase::kEnded) turn_ = context.after(runtime::Duration{0});
}

// Seconds since the last lap; what they were spent on is the caller's to say.
double Replica::lap(Context& context) {
  const TimePoint now = context.now();
  return seconds(now - std::exchange(lap_, now));
}

// What the time since the last lap was spent on when nothing was computed in it.
double& Replica::idle_seconds() {
  if (flights_.empty()) return load_seconds_;
  return flights_.front().contributed() ? reduce_seconds_ : compute_seconds_;
}

void Replica::trace(Context& context, std::uint32_t name, TimePoint start, std::uint64_t step) {
  context.trace().write({name, start, context.now(), static_cast<std::int64_t>(step)});
}

void Replica::turn(Context& context) {
  // Snapshots go first: a full disk link holds training back rather than growing a queue.
  if (!flush(context, snapshots_) || !flush(context, validations_)) return;
  flush(context, contributions_);
  if (phase_ == Phase::kTraining && work(context)) schedule(context);
}

// One turn of what can be computed now, of the next step or of the one behind it; false when there
// is nothing.
bool Replica::work(Context& context) {
  idle_seconds() += lap(context);
  if (view_ == nullptr || !take_over(context)) return false;
  if (flights_.empty()) {
    if (last_iteration_ && state_.iteration >= *last_iteration_) {
      end(context, std::nullopt);
      return false;
    }
    if (!begin_step(context, next_step())) return false;
  }
  Flight& next = flights_.front();
  const bool worked = next.contributed() ? work_ahead(context) : compute(context, next);
  if (worked) context.post_progress();
  compute_seconds_ += lap(context);
  return worked;
}

// Of the step behind the one being reduced, what that one cannot change.
bool Replica::work_ahead(Context& context) {
  using pipeline::StepAhead;
  const StepAhead ahead =
      pipeline::step_ahead(training_.options.schedule, flights_.front().share().slot());
  if (!options_.overlap || ahead == StepAhead::kNothing) return false;
  if (flights_.size() == 1 && !begin_step(context, next_step() + 1)) return false;
  Flight& behind = flights_.back();
  return ahead == StepAhead::kAll ? compute(context, behind) : prepare(context, behind);
}

// False when the micro-batches of its iteration are not here, or there is no such iteration.
bool Replica::begin_step(Context& context, std::uint64_t step) {
  const std::size_t slots = training_.options.schedule.size();
  if (!gather(context, step / slots)) return false;
  pipeline::StepShare share(training_.gan, training_.options, iteration_,
                            static_cast<std::uint32_t>(step % slots));
  flights_.emplace_back(std::move(share), options_.segment_bytes, *view_);
  return true;
}

bool Replica::gather(Context& context, std::uint64_t iteration) {
  if (iteration_ != nullptr && iteration_->iteration() == iteration) return true;
  if (!last_iteration_ || iteration >= *last_iteration_) return false;
  const auto check = view_->checks(options_.checks, iteration).of(iteration);
  const bool witness = check && check->witness == options_.replica;
  std::vector<std::uint32_t> indices = own_in(iteration);
  if (witness) indices.push_back(check->micro_batch);
  auto micro_batches = fed(context, iteration, indices);
  if (!micro_batches) return false;
  std::optional<pipeline::IterationShare::Check> part;
  if (check) part = {check->slot, check->micro_batch};
  iteration_ = std::make_shared<pipeline::IterationShare>(iteration, std::move(*micro_batches),
                                                          part, witness);
  batches_.note_in_use(iteration_->with_events());
  return true;
}

Batches::Next Replica::fed(Context& context, std::uint64_t iteration,
                           std::span<const std::uint32_t> indices) {
  runtime::Result<Batches::Next> next = batches_.next(iteration, indices);
  if (!next.ok()) {
    context.fail(next.error());
    return std::nullopt;
  }
  const auto fits = [&](const pipeline::MicroBatch& each) { return is_of_model(each.events); };
  if (!next->has_value() || std::ranges::all_of(**next, fits)) return std::move(next).value();
  context.fail({runtime::ErrorKind::kLostPeers,
                fmt::format("the loader sent micro-batches of iteration {} that are of another "
                            "model; its node does not do what the others do",
                            iteration)});
  return std::nullopt;
}

bool Replica::is_of_model(const pipeline::Batch& batch) const {
  const std::size_t events = training_.options.micro_batch;
  const auto cells =
      static_cast<std::size_t>(training_.gan.discriminator().input_shape().elements());
  return batch.events == events && batch.images.size() == events * cells * sizeof(float) &&
         batch.conditions.size() == events * 3 * sizeof(float) &&
         batch.event_ids.size() == events * sizeof(std::uint64_t);
}

bool Replica::compute(Context& context, Flight& flight) {
  if (flight.contributed()) return false;
  const std::uint32_t slot = flight.share().slot();
  const TimePoint start = context.now();
  const bool last = slot + 1 == training_.options.schedule.size();
  const model::FinalFrom send = [&](std::int64_t element) {
    // Without anything to compare nothing is left to compute: the last buckets go with the header.
    if (element == 0 && flight.share().to_compute() == flight.share().own()) return;
    flight.begin(0, state_.scales[slot], context.now());
    flight.add_buckets(element, contributions_.messages);
    flush(context, contributions_);
  };
  const bool early = options_.overlap;
  if (!computer_->compute(state_, flight.share(), early ? send : model::FinalFrom{})) {
    if (last) release_events(flight, flight.share().iteration()->held());
    contribute(context, flight, 0, state_.scales[slot]);
    return true;
  }
  trace(context, spans_[slot].compute, start, flight.share().step());
  if (last) release_events(flight, flight.share().computed());
  return true;
}

bool Replica::prepare(Context& context, const Flight& flight) {
  const TimePoint start = context.now();
  if (!computer_->prepare(state_, flight.share())) return false;
  trace(context, spans_[flight.share().slot()].prepare, start, flight.share().step());
  return true;
}

// So many have been computed in the last step that reads their events.
void Replica::release_events(Flight& flight, std::size_t computed) {
  pipeline::IterationShare& share = *flight.share().iteration();
  share.release_events(computed);
  if (&share == iteration_.get()) batches_.note_in_use(share.with_events());
}

void Replica::contribute(Context& context, Flight& flight, std::uint32_t attempt,
                         const std::vector<std::int16_t>& scales) {
  flight.begin(attempt, scales, context.now());
  flight.add_buckets(0, contributions_.messages);
  // The header holds the hash of the state before the step.
  if (&flight == &flights_.front()) flight.add_header(state_hash_, contributions_.messages);
  schedule(context);
}

void Replica::take_bucket(Context& context, const BucketMessage& body, const Buffer& sums) {
  const auto takes = [&](Flight& flight) { return flight.take(body, sums); };
  if (std::none_of(flights_.begin(), flights_.end(), takes)) {
    refuse(context, fmt::format("elements {} to {} of step {} attempt {}", body.begin, body.end,
                                body.step, body.attempt));
  }
}

void Replica::take_header(Context& context, const pipeline::StepHeader& header) {
  const auto& schedule = training_.options.schedule;
  if (flights_.empty() || !flights_.front().announced() || header.step != next_step() ||
      header.attempt != flights_.front().attempt()) {
    refuse(context, fmt::format("the header of step {} attempt {}", header.step, header.attempt));
    return;
  }
  idle_seconds() += lap(context);
  Flight& flight = flights_.front();
  trace(context, spans_[state_.slot].reduce, flight.begun_at(), header.step);
  flight.take(header);
  const model::ContributionLayout& tensors = flight.share().layout();
  const pipeline::Verdict verdict =
      pipeline::judge(header, tensors, static_cast<std::uint32_t>(schedule.size()),
                      view_->checks(options_.checks, state_.iteration));
  if (const auto* diverged = std::get_if<pipeline::Diverged>(&verdict)) {
    end(context, diverged->error);
  } else if (std::holds_alternative<pipeline::Retry>(verdict)) {
    contribute(context, flight, header.attempt + 1,
               pipeline::scales_for_attempt(state_.scales[state_.slot], header,
                                            training_.options.micro_batches));
    compute_seconds_ += lap(context);
  } else if (auto overflown = pipeline::overflow(flight.record(), flight.share().sums(), tensors)) {
    end(context, std::move(*overflown));
  } else {
    commit_flight(context);
  }
}

void Replica::refuse(Context& context, const std::string& what) {
  const std::string known =
      flights_.empty() ? "none" : fmt::format("step {}", flights_.front().share().step());
  context.fail({runtime::ErrorKind::kLostPeers,
                fmt::format("the reducer sent {} while {} is reduced; its node does not do what "
                            "the others do",
                            what, known)});
}

// All but the seconds that applying takes; those spent so far start anew.
StepMetrics Replica::metrics_of(const pipeline::StepRecord& record) {
  StepMetrics metrics;
  metrics.step = record.header.step;
  metrics.epoch = state_.epoch;
  metrics.iteration = state_.iteration;
  metrics.slot = state_.slot;
  metrics.attempts = record.header.attempt + 1;
  metrics.events = record.header.events;
  metrics.event_sum = record.header.event_sum;
  metrics.state_hash = state_hash_;
  const auto slot = training_.options.schedule[state_.slot];
  metrics.losses =
      pipeline::step_losses(training_.gan.description(), training_.gan.contributions(slot), record,
                            training_.options.micro_batches);
  metrics.load_seconds = std::exchange(load_seconds_, 0.0);
  metrics.compute_seconds = std::exchange(compute_seconds_, 0.0);
  metrics.reduce_seconds = std::exchange(reduce_seconds_, 0.0);
  return metrics;
}

void Replica::commit_flight(Context& context) {
  Flight& flight = flights_.front();
  const bool applied = commit(context, flight.record());
  computer_->retire(std::move(flight.share()));
  flights_.pop_front();
  if (!applied || flights_.empty() || !flights_.front().contributed()) return;
  flights_.front().add_header(state_hash_, contributions_.messages);
}

bool Replica::commit(Context& context, const pipeline::StepRecord& record) {
  StepMetrics metrics = metrics_of(record);
  const auto applied = pipeline::apply(training_.gan, training_.options, record, state_);
  state_hash_ = pipeline::hash_of_state(state_);
  metrics.apply_seconds = lap(context);
  const bool epoch_ended = state_.epoch != metrics.epoch;
  const std::uint64_t events = metrics.events;
  take_pace(context, metrics);
  tell_samples(context, record, metrics);
  if (leads_) tell_step(context, metrics);
  last_steps_.push_back(std::move(metrics));
  if (last_steps_.size() > kRememberedSteps) last_steps_.pop_front();
  if (!applied.ok()) {
    end(context, applied.error());
    return false;
  }
  after_commit(context, events, epoch_ended);
  return true;
}

// Of a step that was made with the others.
void Replica::take_pace(Context& context, const StepMetrics& step) {
  if (view_ == nullptr) return;
  pace_.add_step(step.load_seconds + step.compute_seconds);
  if (state_.slot != 0) return;
  pace_.end_iteration(own_in(step.iteration).size());
  if (state_.epoch == step.epoch) return;
  if (const auto pace = pace_.take(options_.replica, state_.iteration)) {
    context.send_control("coordinator", Message::of(Pace(*pace)));
  }
}

void Replica::after_commit(Context& context, std::uint64_t events, bool epoch_ended) {
  if (leads_) snapshot_if_due(epoch_ended);
  if (state_.slot == 0) {
    if (state_.iteration == first_iteration_ + 1) timed_from_ = context.now();
    if (state_.iteration > first_iteration_ + 1) timed_events_ += events;
    timed_to_ = context.now();
  }
  schedule(context);
}

void Replica::snapshot_if_due(bool epoch_ended) {
  const bool asked = std::exchange(checkpoint_requested_, false);
  const auto due = [&](const config::Every& every) {
    return state_.slot == 0 && every.due(state_.iteration, state_.epoch, epoch_ended);
  };
  if (asked || due(options_.checkpoint)) snapshot(snapshots_);
  if (due(options_.validation)) snapshot(validations_);
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
  samples_.tell_all(context);
  const bool began = phase_ != Phase::kAwaiting;
  phase_ = Phase::kEnded;
  ReplicaEnd& body = end_.emplace();
  body.replica = options_.replica;
  if (began) body.state = std::make_shared<const pipeline::TrainingState>(std::move(state_));
  body.error = std::move(error);
  body.seconds = timed_to_ > timed_from_ ? seconds(timed_to_ - timed_from_) : 0.0;
  body.timed_events = timed_events_;
  if (!last_steps_.empty()) body.last_step = last_steps_.back();
  body.validations = validations_.sent;
  tell_end(context);
}

void Replica::tell_end(Context& context) {
  context.send_control("coordinator", Message::of(ReplicaEnd(*end_)));
}

std::string Replica::waiting_for() const {
  if (phase_ == Phase::kAwaiting) return "the beginning of training";
  if (phase_ == Phase::kEnded) return "its end";
  if (view_ == nullptr) return "a View that it is in";
  const std::string step = fmt::format("iteration {} slot {}", state_.iteration, state_.slot);
  if (!snapshots_.messages.empty() || !validations_.messages.empty()) {
    return "room for a snapshot before " + step;
  }
  if (!incomplete_.empty()) {
    return fmt::format("{} micro-batches of iteration {} that were another member's: {} are here",
                       incomplete_.front().missing.size(), incomplete_.front().share->iteration(),
                       batches_.ahead());
  }
  if (flights_.empty()) {
    return fmt::format("micro-batches of iteration {}: {} of {} are here", state_.iteration,
                       batches_.ahead(), own_in(state_.iteration).size());
  }
  return (flights_.front().contributed() ? "the sum of " : "its own turn at ") + step;
}

}  // namespace troupe::actors
