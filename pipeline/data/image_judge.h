#pragma once

// A trained classifier that says of images what they show, so that those of a generator can be set
// beside those of a dataset (model/physics/class_figures.h).

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/backend.h"
#include "model/gan.h"
#include "model/physics/class_figures.h"
#include "model/program.h"
#include "pipeline/data/dataset.h"
#include "pipeline/data/generation.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// A trained network's, as NetworkState has them.
struct TrainedValues {
  std::span<const float> weights, moving;
};

// It computes on the host by portable kernels in fp32, so that its words have the same bits on
// every machine. One thread at a time.
class ImageJudge {
 public:
  // Most values of a last hidden layer that are compared: one distance of so many takes seconds,
  // which grow with their cube.
  static constexpr std::int64_t kMostFeatures = 1024;

  // `network` has the values of the classifier's network; both are copied as far as they are
  // needed. The classes are those of the first loss that is a cross-entropy of classes, and the
  // features what the layer with weights reads that tells them. Errors (kUsage) say why a model is
  // no judge: another task, no classes, conditions that it reads, no hidden layer or too large a
  // one; and a machine without portable kernels.
  static runtime::Result<std::unique_ptr<ImageJudge>> create(const model::GanDescription& model,
                                                             const TrainedValues& network);

  // The shape of the images that it reads.
  model::Shape image_shape() const { return program_->input_shape(); }
  std::size_t classes() const { return classes_; }
  std::size_t features() const { return features_; }

  // Without any yet.
  model::ClassifiedImages none() const;
  // Appends what it says of images in the units of the network's own training, one behind the
  // other.
  void add(std::span<const float> images, model::ClassifiedImages& into);

 private:
  explicit ImageJudge(std::unique_ptr<model::Backend> backend) : backend_(std::move(backend)) {}

  std::unique_ptr<model::Backend> backend_;
  std::unique_ptr<const model::Program> program_;
  std::optional<model::Workspace> workspace_;
  std::vector<float> weights_, moving_;
  int class_output_ = 0, feature_output_ = 0;  // of the program
  std::size_t classes_ = 0, features_ = 0;
};

// Events of a dataset, and what a generator needs to make images like them.
struct JudgedData {
  model::ClassifiedImages images;
  std::vector<float> energies;              // E / 100 GeV
  std::vector<float> angles;                // rad; empty for models without angle
  std::vector<std::vector<float>> columns;  // model::columns_of(latent)
};

// Asked now and then; false ends the work, with no result. May be null.
using GoingOn = std::function<bool()>;

// `events` events (all, if there are fewer), which lie evenly in the order of the files, as a file
// may have a class of its own. `latent` is that of the generator that is to be judged. The
// dataset's images have the judge's shape (CHECKed). Errors: those of reading.
runtime::Result<std::optional<JudgedData>> judge_dataset(ImageJudge& judge, Dataset& dataset,
                                                         std::uint64_t events,
                                                         const model::LatentDescription& latent,
                                                         const GoingOn& going_on = {});

// An image for each of `data`, of the same conditions, from a generator that ShowerMaker makes
// showers by.
std::optional<model::ClassifiedImages> judge_generated(ImageJudge& judge, ShowerMaker& maker,
                                                       const TrainedValues& generator,
                                                       const JudgedData& data, std::uint64_t seed,
                                                       const GoingOn& going_on = {});

}  // namespace troupe::pipeline
