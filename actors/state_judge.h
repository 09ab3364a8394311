#pragma once

// Judges states of a run: the part that every task shares. Which states come, and the order between
// snapshots and the last state, are here; what is found of a state is a derived class's.
//
// Ports: in "snapshots", control; out "metrics". It has a thread of its own. Every snapshot is
// judged, in the order in which they came, and then the last state.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "actors/messages.h"
#include "actors/sample_teller.h"
#include "actors/step_engine.h"
#include "config/topology.h"
#include "model/physics/observables.h"
#include "runtime/actor.h"

namespace troupe::actors {

struct ValidatorOptions {
  // At most as many as the test data have.
  std::uint64_t events = config::ValidatorSection{}.events;
  model::ImageUnits units;  // of the images as the networks see them
  // The state of this step was validated before the run was stopped, and metrics have the result.
  std::optional<std::uint64_t> told_step;
  // Bins, thresholds and the figure by which the best state is chosen; its `events` are those
  // above.
  config::ValidatorSection section = {};
};

class StateJudge : public runtime::Actor {
 public:
  std::string waiting_for() const override;

 protected:
  using Context = runtime::Context;
  using Message = runtime::Message;

  StateJudge(ValidatorOptions options, TrainingContext training);

  // To be called in start().
  void start_judging(Context& context);
  // Finds what there is to say of the state before `step`, and gives it to tell().
  virtual void judge(Context& context, const StatePointer& state, std::uint64_t step) = 0;
  // Whether metrics are to be told of the state before `step`. One that was judged before the run
  // was resumed has a line there.
  bool is_told(std::uint64_t step) const;
  // Tells the coordinator and metrics; judging began at `start`.
  void tell(Context& context, std::uint64_t step, ValidationResult result,
            runtime::TimePoint start);

  ValidatorOptions options_;
  TrainingContext training_;
  runtime::PortId metrics_;

 private:
  void receive_snapshot(Context& context, const Snapshot& snapshot, Message& message);
  void receive_renewed(Context& context, const ReplicasRenewed& renewed);
  void receive_last_state(Context& context, const LastState& last);
  void receive_figure_asked(Context& context, const FigureAsked& asked, Message& message);
  // Once that state is judged.
  void answer_figure(Context& context);
  // Judges the last state once all snapshots before it have come.
  void finish_if_complete(Context& context);
  void look_at(Context& context, const StatePointer& state);

  std::map<std::string, std::uint64_t> snapshots_;  // received, by sender
  std::optional<LastState> last_;
  std::optional<std::uint64_t> told_step_;  // of the state that was told last
  std::optional<FigureFound> figure_;       // of that state too
  // The replica that asks for a figure, and the step before which its state stands.
  struct Question {
    std::string replica;
    std::uint64_t step = 0;
  };
  std::optional<Question> question_;
  SampleTeller samples_;
};

}  // namespace troupe::actors
