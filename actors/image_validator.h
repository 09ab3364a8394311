#pragma once

// Compares images of a snapshot's generator with test events of the same conditions by what a
// trained classifier says of both (model/physics/class_figures.h): for images that are no showers.
//
// Its result is a pure function of the snapshot, the test data, how many events of them are taken
// (ValidatorOptions::events), the judge and the seed. Where a mean of the generator's weights is
// kept (train.mean), that is what makes the images. Metrics are told no losses of the test events.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/state_judge.h"
#include "pipeline/data/dataset.h"
#include "pipeline/data/generation.h"
#include "pipeline/data/image_judge.h"
#include "runtime/base/thread_team.h"

namespace troupe::actors {

class ImageValidator final : public StateJudge {
 public:
  // `data` and `judge` are its alone while it lives, and their images have one shape.
  ImageValidator(ValidatorOptions options, TrainingContext training, pipeline::Dataset& data,
                 pipeline::ImageJudge& judge);

  void start(Context& context) override;

 private:
  // Judges the data, once. False: they could not be read, or the run is stopping.
  bool judge_data(Context& context);
  void judge(Context& context, const StatePointer& state, std::uint64_t step) override;

  pipeline::Dataset& data_;
  pipeline::ImageJudge& judge_;
  // The figures by which the best state is chosen, and by which train.stop ends training; "": none.
  const std::string chosen_, stopping_;
  std::unique_ptr<runtime::ThreadTeam> team_;
  std::unique_ptr<pipeline::ShowerMaker> maker_;
  std::optional<pipeline::JudgedData> judged_data_;
  std::vector<model::Figure> of_data_;  // against themselves: their floors
};

}  // namespace troupe::actors
