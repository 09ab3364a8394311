#include "actors/step_teller.h"

#include <algorithm>
#include <utility>

#include "pipeline/steps/state_layout.h"

namespace troupe::actors {

using runtime::Message;
using runtime::TimePoint;

namespace {

// With fewer, a single iteration in which a cache was cold or the system was busy would decide.
constexpr std::uint64_t kFewestToTell = 2;
// Between two paces. The first come soon, since work may have to be shared out anew.
constexpr auto kFirstTellingPause = std::chrono::milliseconds(500);
constexpr auto kLongestPause = std::chrono::seconds(2);

}  // namespace

double Laps::take(TimePoint now) { return runtime::seconds(now - std::exchange(last_, now)); }

void Laps::spend(StepEngine::Waits waits, TimePoint now) {
  double& on = waits == StepEngine::Waits::kForBatches ? load_
               : waits == StepEngine::Waits::kForSums  ? reduce_
                                                       : compute_;
  on += take(now);
}

void Laps::put_into(StepMetrics& metrics) {
  metrics.load_seconds = std::exchange(load_, 0.0);
  metrics.compute_seconds = std::exchange(compute_, 0.0);
  metrics.reduce_seconds = std::exchange(reduce_, 0.0);
}

void IterationTimes::add(std::uint64_t iteration, std::uint64_t events_of_step, TimePoint now) {
  if (iteration == first_iteration + 1) from = now;
  if (iteration > first_iteration + 1) events += events_of_step;
  to = now;
}

void PaceMeter::restart() {
  is_whole_ = false;
  iterations_ = micro_batches_ = 0;
  measured_seconds_ = 0.0;
  taken_.reset();
  pause_ = kFirstTellingPause;
}

void PaceMeter::end_iteration(std::uint64_t micro_batches) {
  const double seconds = std::exchange(seconds_, 0.0);
  if (!std::exchange(is_whole_, true)) return;
  ++iterations_;
  micro_batches_ += micro_batches;
  measured_seconds_ += seconds;
}

std::optional<Pace> PaceMeter::take(std::uint32_t replica, std::uint64_t iteration, TimePoint now) {
  if (!taken_) taken_ = now;
  const bool is_time = now - *taken_ >= pause_;
  if (!is_time || iterations_ < kFewestToTell || micro_batches_ == 0) return std::nullopt;
  taken_ = now;
  pause_ = std::min<runtime::Duration>(2 * pause_, kLongestPause);
  iterations_ = 0;
  return Pace{replica, iteration, std::exchange(micro_batches_, 0),
              std::exchange(measured_seconds_, 0.0)};
}

void StepTeller::start(Context& context) {
  metrics_ = context.out("metrics");
  samples_.start(context);
}

void StepTeller::enter(Context& context, bool leads, std::size_t members) {
  leads_ = leads;
  samples_.note_members(members);
  if (!leads_) untold_.clear();
  pace_.restart();
  told_idle_ = false;
  const auto asked_from = std::exchange(asked_from_, std::nullopt);
  if (leads_ && asked_from) tell_again(context, *asked_from);
}

void StepTeller::finish(Context& context) {
  is_over_ = true;
  samples_.tell_all(context);
  if (asked_from_) tell_again(context, *std::exchange(asked_from_, std::nullopt));
}

void StepTeller::tell(Context& context, StepEngine& engine, const pipeline::StepRecord& record,
                      StepMetrics metrics, bool in_view) {
  if (in_view) {
    tell_pace(context, engine, metrics);
    tell_samples(context, engine, record, metrics);
  }
  if (leads_) tell_line(context, metrics);
  last_steps_.push_back(std::move(metrics));
  if (last_steps_.size() > kRememberedSteps) last_steps_.pop_front();
}

void StepTeller::tell_pace(Context& context, StepEngine& engine, const StepMetrics& step) {
  const pipeline::TrainingState& state = engine.state();
  if (!told_idle_ && engine.feed().is_idle_from(step.iteration)) {
    told_idle_ = true;
    context.send_control("coordinator", Message::of(Pace{replica_, state.iteration, 0, 0.0}));
  }
  pace_.add_step(step.load_seconds + step.compute_seconds);
  if (state.slot != 0) return;
  pace_.end_iteration(engine.feed().owned_in(step.iteration));
  if (const auto pace = pace_.take(replica_, state.iteration, context.now())) {
    context.send_control("coordinator", Message::of(Pace(*pace)));
  }
}

void StepTeller::tell_samples(Context& context, StepEngine& engine,
                              const pipeline::StepRecord& record, const StepMetrics& step) {
  if (!samples_.is_heard()) return;
  samples_.add(context, "compute_seconds", step.compute_seconds);
  samples_.add(context, "load_seconds", step.load_seconds);
  samples_.add(context, "batches_ahead", static_cast<double>(engine.feed().ahead()));
  if (leads_) tell_gradient(context, record, step.slot);
  samples_.tell(context);
}

// All replicas have the same sums, so one of them tells. Not every norm of quick steps is computed.
void StepTeller::tell_gradient(Context& context, const pipeline::StepRecord& record,
                               std::uint32_t slot) {
  const model::SlotKind kind = training_.options.schedule[slot];
  const std::string learner = model::learner_name(kind);
  if (learner.empty()) return;
  auto& told = gradient_told_.at(pipeline::updated_network(kind));
  const TimePoint now = context.now();
  if (told && now - *told < kTellEvery) return;
  told = now;
  samples_.add(context, "gradient_norm/" + learner,
               pipeline::gradient_norm(training_.gan.contributions(kind), record));
}

// A line in front of which none waits is sent at once, and dropped where there is no room, as
// metrics may be. One that is told again waits for credit, and all lines behind it do, so that they
// come in their order. So does a turn of workers, as the lines are the log of their order; the
// replica makes no step while too many of them wait.
void StepTeller::tell_line(Context& context, StepMetrics step) {
  if (!metrics_.valid()) return;
  step.again = std::exchange(next_is_again_, false);
  const bool waits = !untold_.empty() || step.again || training_.options.has_turns();
  if (!waits) {
    context.send(metrics_, Message::of(std::move(step)));
    return;
  }
  untold_.push_back(std::move(step));
  if (untold_.size() > kRememberedSteps) untold_.pop_front();
  tell_untold(context);
}

void StepTeller::tell_again(Context& context, std::uint64_t from) {
  if (!metrics_.valid()) return;
  if (!leads_ && !is_over_) {
    asked_from_ = from;
    return;
  }
  untold_.clear();
  for (const StepMetrics& step : last_steps_) {
    if (step.step < from) continue;
    untold_.push_back(step);
    untold_.back().again = true;
  }
  next_is_again_ = untold_.empty();
  tell_untold(context);
}

bool StepTeller::tell_untold(Context& context) {
  for (; !untold_.empty(); untold_.pop_front()) {
    Message message = Message::of(StepMetrics(untold_.front()));
    if (!context.can_send(metrics_, message.bytes())) return false;
    context.send(metrics_, std::move(message));
  }
  return true;
}

}  // namespace troupe::actors
