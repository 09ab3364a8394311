#include "actors/state_judge.h"

#include <utility>

#include <fmt/format.h>

namespace troupe::actors {

using runtime::Message;

StateJudge::StateJudge(ValidatorOptions options, TrainingContext training)
    : options_(std::move(options)), training_(training) {}

void StateJudge::start_judging(Context& context) {
  on<Snapshot>(&StateJudge::receive_snapshot);
  on<LastState>(&StateJudge::receive_last_state);
  on<FigureAsked>(&StateJudge::receive_figure_asked);
  on<ReplicasRenewed>(&StateJudge::receive_renewed);
  training_.backend.prepare_thread();
  metrics_ = context.out("metrics");
  samples_.start(context, "metrics");
}

void StateJudge::receive_snapshot(Context& context, const Snapshot& snapshot, Message& message) {
  ++snapshots_[std::string(message.sender_name())];
  look_at(context, snapshot.state);
  finish_if_complete(context);
}

void StateJudge::receive_renewed(Context&, const ReplicasRenewed& renewed) {
  for (const std::string& replica : renewed.replicas) snapshots_.erase(replica);
}

void StateJudge::receive_last_state(Context& context, const LastState& last) {
  last_ = last;
  finish_if_complete(context);
}

void StateJudge::receive_figure_asked(Context& context, const FigureAsked& asked,
                                      Message& message) {
  question_ = {std::string(message.sender_name()), asked.step};
  answer_figure(context);
}

void StateJudge::answer_figure(Context& context) {
  if (!question_ || !figure_ || figure_->step != question_->step) return;
  context.send_control(question_->replica, Message::of(FigureFound(*figure_)));
  question_.reset();
}

void StateJudge::finish_if_complete(Context& context) {
  if (!last_ || snapshots_[last_->leader] < last_->snapshots) return;
  look_at(context, last_->state);
  last_.reset();
  context.send_control("coordinator", Message::of(LastStateDone{}));
}

void StateJudge::look_at(Context& context, const StatePointer& state) {
  const std::uint64_t step = state->step(training_.options.schedule.size());
  if (told_step_ != step) judge(context, state, step);
}

std::string StateJudge::waiting_for() const {
  if (!last_) return "a snapshot";
  const auto here = snapshots_.find(last_->leader);
  return fmt::format("the snapshots before the last state: {} of {} are here",
                     here == snapshots_.end() ? 0 : here->second, last_->snapshots);
}

bool StateJudge::is_told(std::uint64_t step) const {
  return metrics_.valid() && options_.told_step != step;
}

void StateJudge::tell(Context& context, std::uint64_t step, ValidationResult result,
                      runtime::TimePoint start) {
  told_step_ = step;
  if (is_told(step)) {
    telemetry::ValidationFacts facts{result.json};
    context.send(metrics_, Message::of(EventMetrics{{0.0, step, std::move(facts)}}));
    samples_.add(context, "seconds", runtime::seconds(context.now() - start));
    samples_.tell_all(context);
  }
  figure_ = {step, result.stop_distance};
  answer_figure(context);
  context.send_control("coordinator", Message::of(std::move(result)));
}

}  // namespace troupe::actors
