#pragma once

// What train.stop wants of one replica: which states the Validator is to judge before the step that
// follows them can be reduced, and behind which steps nothing may be begun yet.
//
// Where it reads a figure, the leader's header of the step behind such a state says what was found.
// The step itself is computed meanwhile. What is wanted follows from the state alone, so it is the
// same after any change of leader, head or View, and after a resume.
//
// One thread.

#include <cstdint>
#include <optional>

#include "config/units.h"
#include "pipeline/steps/training_state.h"

namespace troupe::actors {

class EarlyEnd {
 public:
  // `every`: when the Validator judges. The options outlive this.
  EarlyEnd(const pipeline::TrainingOptions& options, config::Every every)
      : options_(options), every_(every) {}

  // Whether the header of the state's next step is to say what the Validator finds of the state.
  bool wants_figure(const pipeline::TrainingState& state) const;
  // The Validator has found this of the state before `step`; that of another one is forgotten.
  void take_figure(std::uint64_t step, double distance) { figure_ = {step, distance}; }
  // What it has found of this state, if that is wanted and known.
  std::optional<double> figure_of(const pipeline::TrainingState& state) const;
  // Whether training may turn out to be over with the state's next step.
  bool may_follow(const pipeline::TrainingState& state) const;

 private:
  struct Figure {
    std::uint64_t step = 0;
    double distance = 0.0;
  };

  const pipeline::TrainingOptions& options_;
  config::Every every_;
  std::optional<Figure> figure_;  // the newest
};

}  // namespace troupe::actors
