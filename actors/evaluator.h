#pragma once

// Tells how well a supervised network does on test events: losses, accuracy, area under the curve.
// It stands where a GAN's run has its Validator. `best` of its section names the figure that
// chooses the best state, pipeline::quality_words() has them.

#include <memory>
#include <set>
#include <string>

#include "actors/state_judge.h"
#include "model/backend.h"
#include "pipeline/data/dataset.h"
#include "pipeline/data/output_meter.h"

namespace troupe::actors {

class Evaluator final : public StateJudge {
 public:
  // `data` is the Evaluator's alone while it lives.
  Evaluator(ValidatorOptions options, TrainingContext training, pipeline::Dataset& data);

  void start(runtime::Context& context) override;

 private:
  void judge(Context& context, const StatePointer& state, std::uint64_t step) override;
  // Once, that the figure by which the run goes is not there.
  void warn_of_missing(Context& context, const pipeline::OutputQuality& quality,
                       const std::string& figure);

  pipeline::Dataset& data_;
  std::unique_ptr<model::Backend> host_;  // null: the run's own computes on the host
  std::unique_ptr<pipeline::OutputMeter> meter_;
  std::set<std::string> missing_;  // figures that were warned of
};

}  // namespace troupe::actors
