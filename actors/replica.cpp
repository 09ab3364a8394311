#include "actors/replica.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Message;
using runtime::TimePoint;

// So many of the newest steps a lost leader may have told without getting through.
constexpr std::uint64_t kToldAgain = 64;
// The next look for room in front of the Monitor.
constexpr runtime::Duration kUntilRoom = std::chrono::milliseconds(5);

void trace(Context& context, std::uint32_t name, TimePoint start, std::uint64_t step) {
  context.trace().write({name, start, context.now(), static_cast<std::int64_t>(step)});
}

void post_copy(const pipeline::TrainingState& state, Outbox& outbox) {
  if (!outbox.valid()) return;
  outbox.post(Message::of(Snapshot{std::make_shared<const pipeline::TrainingState>(state)}));
}

void ask_for_figure(Context& context, std::uint64_t step) {
  context.send_control("validator", Message::of(FigureAsked{step}));
}

void refuse(Context& context, const StepEngine& engine, const std::string& what) {
  context.fail({runtime::ErrorKind::kLostPeers,
                fmt::format("the reducer sent {} while step {} is next; its node does not do what "
                            "the others do",
                            what, engine.next_step())});
}

}  // namespace

void Snapshots::start(Context& context) {
  checkpoints_ = Outbox(context.out("snapshots"));
  validations_ = Outbox(context.out("validation"));
}

void Snapshots::take_if_due(const pipeline::TrainingState& state, bool epoch_ended) {
  const auto is_due = [&](const config::Every& every) {
    return state.slot == 0 && every.due(state.iteration, state.epoch, epoch_ended);
  };
  if (std::exchange(requested_, false) || is_due(checkpoint_)) post_copy(state, checkpoints_);
  if (is_due(validation_)) post_copy(state, validations_);
}

void Snapshots::take_for_figure(Context& context, const pipeline::TrainingState& state,
                                std::uint64_t step) {
  post_copy(state, validations_);
  ask_for_figure(context, step);
}

Replica::Replica(ReplicaOptions options, TrainingContext training)
    : options_(std::move(options)),
      training_(training),
      newcomer_(training),
      teller_(options_.replica, training),
      snapshots_(options_.checkpointer.every, options_.validator.every) {}

void Replica::start(Context& context) {
  on<BucketMessage>(&Replica::receive_bucket);
  on<HeaderMessage>(&Replica::receive_header);
  on<BatchMessage>(&Replica::receive_batch);
  on<EndOfData>(&Replica::receive_end_of_data);
  on<ViewMessage>(&Replica::receive_view);
  on<BeginTraining>(&Replica::receive_begin);
  on<ShareState>(&Replica::receive_share_state);
  on<TellState>(&Replica::receive_tell_state);
  on<TellSteps>(&Replica::receive_tell_steps);
  on<StopTraining>(&Replica::receive_stop);
  on<CheckpointRequest>(&Replica::receive_checkpoint_request);
  on<FigureFound>(&Replica::receive_figure);
  training_.backend.prepare_thread();
  engine_ = std::make_unique<StepEngine>(options_, training_);
  if (engine_->threads() < static_cast<int>(options_.section.threads)) {
    context.log().warning(
        fmt::format("the system gave {} of actors.replica.threads = {} threads; "
                    "going on with these (see ulimit -u and -v)",
                    engine_->threads(), static_cast<int>(options_.section.threads)));
  }
  contributions_ = Outbox(context.out("contributions"));
  snapshots_.start(context);
  teller_.start(context);
  const auto& schedule = training_.options.schedule;
  for (std::size_t slot = 0; slot < schedule.size(); ++slot) {
    const auto name = [&](const char* what) {
      return context.trace().name(
          fmt::format("{} {} {}", what, slot, model::slot_name(schedule[slot])));
    };
    spans_.push_back({name("prepare"), name("compute"), name("reduce")});
  }
}

// Batches and questions are taken in every phase. A replica that has ended takes nothing else but a
// View, whose head it tells that it has ended. One without a state keeps what its reducer sends
// until it has the state that this follows.
void Replica::receive(Context& context, Message message) {
  const bool is_of_any_phase = message.as<BatchMessage>() != nullptr ||
                               message.as<TellSteps>() != nullptr ||
                               message.as<TellState>() != nullptr;
  if (is_of_any_phase) return Actor::receive(context, std::move(message));
  if (phase_ == Phase::kEnded && message.as<ViewMessage>() == nullptr) return;
  if (phase_ == Phase::kAwaiting && message.port() == "reduced") {
    return newcomer_.keep(std::move(message));
  }
  Actor::receive(context, std::move(message));
}

void Replica::credit_returned(Context& context, std::string_view) {
  teller_.tell_untold(context);
  schedule(context);
}

void Replica::schedule(Context& context) {
  if (turn_.number == 0 && phase_ != Phase::kEnded) turn_ = context.after(runtime::Duration{0});
}

StepEngine::Hooks Replica::hooks(Context& context) {
  return {[&context] { return context.now(); },
          [this](Message message) { contributions_.post(std::move(message)); },
          [this, &context] { contributions_.flush(context); }};
}

void Replica::timer(Context& context, runtime::TimerId) {
  using Work = StepEngine::Turn::Work;
  turn_ = {};
  // Lines of turns hold training back while too many wait, and are told behind its end.
  if (!teller_.tell_untold(context) && (phase_ == Phase::kEnded || teller_.is_full())) {
    turn_ = context.after(kUntilRoom);
    return;
  }
  if (phase_ == Phase::kEnded) return;
  // Snapshots go first: a full link to the disk holds training back, so that no queue grows.
  if (!snapshots_.flush(context)) return;
  contributions_.flush(context);
  if (phase_ != Phase::kTraining) return;
  laps_.spend(engine_->waits(), context.now());
  const TimePoint start = context.now();
  const StepEngine::Turn turn = engine_->work(hooks(context));
  if (turn.error) return context.fail(*turn.error);
  if (turn.finished) return end(context, std::nullopt);
  if (turn.work == Work::kNothing) return;
  const SpanNames& names = spans_[turn.slot];
  if (turn.work == Work::kComputed) trace(context, names.compute, start, turn.step);
  if (turn.work == Work::kPrepared) trace(context, names.prepare, start, turn.step);
  context.post_progress();
  laps_.spend_computing(context.now());
  schedule(context);
}

// A batch is taken after the end too. Else the loader would go on reading, for nobody, as fast as
// it can.
void Replica::receive_batch(Context& context, const BatchMessage&, Message& message) {
  if (message.port() != "batches") return;
  engine_->feed().take(std::move(message));
  schedule(context);
}

void Replica::receive_end_of_data(Context& context, const EndOfData& end, Message& message) {
  if (message.port() == "batches") engine_->feed().set_end(end.iterations);
  schedule(context);
}

// Training begins once: another member may send a second state, which is not wanted; nor is one
// that was meant for an earlier process.
void Replica::receive_begin(Context& context, const BeginTraining& beginning, Message& message) {
  const bool is_taught = message.sender_name() != "coordinator";
  if (phase_ != Phase::kAwaiting) return;
  if (is_taught && beginning.process != options_.process) return;
  engine_->begin(*beginning.state);
  times_.first_iteration = engine_->state().iteration;
  phase_ = Phase::kTraining;
  laps_.begin(context.now());
  if (is_taught) tell_learned(context, false);
  for (Message& lesson : newcomer_.take_kept()) receive(context, std::move(lesson));
  schedule(context);
}

void Replica::receive_share_state(Context& context, const ShareState& share) {
  const auto state = std::make_shared<const pipeline::TrainingState>(engine_->state());
  const std::uint32_t replicas = options_.checks.replicas_per_member;
  for (std::uint32_t i = 0; i < replicas; ++i) {
    context.send_control(replica_name(share.member * replicas + i),
                         Message::of(BeginTraining{state, share.process}));
  }
}

void Replica::receive_tell_state(Context& context, const TellState&, Message& message) {
  StatePointer state;
  if (phase_ == Phase::kTraining) {
    state = std::make_shared<const pipeline::TrainingState>(engine_->state());
  }
  if (phase_ == Phase::kEnded) state = end_->state;
  context.send_control(message.sender_name(), Message::of(OwnState{std::move(state)}));
}

void Replica::tell_learned(Context& context, bool complete) {
  context.send_control("coordinator",
                       Message::of(Learned{options_.replica, newcomer_.steps(), complete}));
}

void Replica::receive_tell_steps(Context& context, const TellSteps& asked) {
  teller_.tell_again(context, asked.from);
}

void Replica::receive_stop(Context& context, const StopTraining&) { end(context, std::nullopt); }

void Replica::receive_checkpoint_request(Context&, const CheckpointRequest&) {
  snapshots_.request();
}

void Replica::receive_figure(Context& context, const FigureFound& found) {
  engine_->early_end().take_figure(found.step, found.distance);
  schedule(context);
}

// The View begins with the next step. Everything under way is contributed anew, and the loader is
// told which micro-batches are this replica's now. A replica that leads from here on tells again
// what the leader before it may not have got through: the newest steps, which the Monitor knows by
// their numbers, and a snapshot that was due. After a change of the head nobody knows how much that
// was, and its Validator has not seen the state that the next step waits for. A replica that has
// ended tells the new View's head so.
void Replica::receive_view(Context& context, const ViewMessage& told) {
  const ViewPointer& view = told.view;
  const bool first = view_ == nullptr;
  // With the head its Validator and those that wrote down what the leader told are others too.
  const bool is_of_another_head = !first && view->id.term != view_->id.term;
  if (phase_ == Phase::kEnded) {
    if (is_of_another_head) end_->validations = 0;
    view_ = view;
    context.send_control("coordinator", Message::of(ReplicaEnd(*end_)));
    return;
  }
  if (phase_ != Phase::kTraining || view->first_step != engine_->next_step()) {
    return refuse(context, *engine_,
                  fmt::format("View {} from step {} on", text_of(view->id), view->first_step));
  }
  const std::uint32_t replicas = options_.checks.replicas_per_member;
  const bool led = std::exchange(leads_, view->leader() * replicas == options_.replica);
  view_ = view;
  teller_.enter(context, leads_, view_->ring.size());
  if (view_->is_new(options_.replica / replicas)) tell_learned(context, true);
  contributions_.clear();
  context.send_control(options_.loader, Message::of(engine_->enter(view_)));
  if (is_of_another_head) {
    snapshots_.forget_validations();
  } else if (leads_ && !led && !first && teller_.newest() != nullptr) {
    const std::uint64_t newest = teller_.newest()->step;
    const bool all = view_->id.term > 1 || training_.options.has_turns();
    teller_.tell_again(context, all ? 0 : newest - std::min(newest, kToldAgain - 1));
    const pipeline::TrainingState& state = engine_->state();
    snapshots_.take_if_due(state, state.epoch != teller_.newest()->epoch);
  }
  // The Validator judges a state once, however often it comes.
  if (leads_ && engine_->early_end().wants_figure(engine_->state())) {
    snapshots_.take_for_figure(context, engine_->state(), engine_->next_step());
  }
  schedule(context);
}

void Replica::receive_bucket(Context& context, const BucketMessage& body, Message& message) {
  const runtime::Buffer& sums = message.payloads().front();
  if (has_no_view()) {
    if (newcomer_.take_bucket(body, sums, *engine_)) return;
    return refuse(context, *engine_,
                  fmt::format("elements {} to {} of step {}", body.begin, body.end, body.step));
  }
  if (engine_->take_bucket(body, sums)) return;
  refuse(context, *engine_,
         fmt::format("elements {} to {} of step {} attempt {}", body.begin, body.end, body.step,
                     body.attempt));
}

// The header ends a step's attempt: the step is applied, made again with other scales, or the run
// ends because its numbers cannot be used.
void Replica::receive_header(Context& context, const HeaderMessage& body) {
  const pipeline::StepHeader& header = body.header;
  if (has_no_view()) {
    if (!newcomer_.expects(header, *engine_)) {
      return refuse(context, *engine_, fmt::format("the header of step {}", header.step));
    }
    const auto record = newcomer_.complete(header, *engine_);
    if (!record.ok()) return context.fail(record.error());
    // It has shown that it applies a step as the others do, and may join them.
    if (newcomer_.steps() == kProvenSteps) tell_learned(context, false);
    commit(context, *record);
    return;
  }
  if (body.worker != kOfAll) {
    laps_.spend(engine_->waits(), context.now());
    const auto taken = engine_->take_header_of_worker(body, hooks(context));
    // The replicas of other sites would wait for this one.
    if (!taken.ok()) return context.fail(taken.error());
    if (!*taken) {
      return refuse(context, *engine_,
                    fmt::format("the header of step {} of worker {}", header.step, body.worker));
    }
    laps_.spend_computing(context.now());
    return schedule(context);
  }
  if (!engine_->expects(header)) {
    return refuse(context, *engine_,
                  fmt::format("the header of step {} attempt {}", header.step, header.attempt));
  }
  laps_.spend(engine_->waits(), context.now());
  trace(context, spans_[engine_->state().slot].reduce, engine_->first().begun_at(), header.step);
  const auto is_good = engine_->take_header(header, hooks(context));
  if (!is_good.ok()) return end(context, is_good.error());
  if (!*is_good) {
    laps_.spend_computing(context.now());
    return schedule(context);
  }
  if (commit(context, engine_->first().record())) engine_->retire(hooks(context));
}

bool Replica::commit(Context& context, const pipeline::StepRecord& record) {
  // Metrics hold the iteration and the epoch of the step itself, so they are made before it is
  // applied. A step that ends the run is told all the same.
  StepMetrics metrics = engine_->metrics_of(record);
  laps_.put_into(metrics);
  const auto applied = engine_->apply(record);
  metrics.apply_seconds = laps_.take(context.now());
  const pipeline::TrainingState& state = engine_->state();
  const bool epoch_ended = state.epoch != metrics.epoch;
  const std::uint64_t events = metrics.events;
  teller_.tell(context, *engine_, record, std::move(metrics), view_ != nullptr);
  if (!applied.ok()) {
    end(context, applied.error());
    return false;
  }
  if (leads_) snapshots_.take_if_due(state, epoch_ended);
  if (leads_ && engine_->early_end().wants_figure(state)) {
    ask_for_figure(context, engine_->next_step());
  }
  if (state.slot == 0) times_.add(state.iteration, events, context.now());
  schedule(context);
  return true;
}

void Replica::end(Context& context, std::optional<runtime::Error> error) {
  teller_.finish(context);
  const bool began = phase_ != Phase::kAwaiting;
  phase_ = Phase::kEnded;
  ReplicaEnd& body = end_.emplace();
  body.replica = options_.replica;
  if (began) {
    body.state = std::make_shared<const pipeline::TrainingState>(engine_->release_state());
  }
  body.error = std::move(error);
  body.seconds = times_.to > times_.from ? runtime::seconds(times_.to - times_.from) : 0.0;
  body.timed_events = times_.events;
  if (teller_.newest() != nullptr) body.last_step = *teller_.newest();
  body.validations = snapshots_.validations();
  context.send_control("coordinator", Message::of(ReplicaEnd(*end_)));
  if (!teller_.tell_untold(context)) turn_ = context.after(kUntilRoom);
}

std::string Replica::waiting_for() const {
  if (phase_ == Phase::kAwaiting) return "the beginning of training";
  if (phase_ == Phase::kEnded) return "its end";
  if (view_ == nullptr) return "a View that it is in";
  if (teller_.is_full()) return "room for lines of turns in front of the monitor";
  if (!snapshots_.waits()) return engine_->waiting_for();
  return fmt::format("room for a snapshot before iteration {} slot {}", engine_->state().iteration,
                     engine_->state().slot);
}

}  // namespace troupe::actors
