#pragma once

// A checkpoint opened with its networks, for verbs that make showers or leave with a generator, and
// for runs that are judged by a classifier.

#include <memory>
#include <optional>
#include <string>

#include "config/topology.h"
#include "model/backend.h"
#include "model/gan.h"
#include "pipeline/checkpoint/checkpoint.h"
#include "pipeline/data/image_judge.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// Where and how it computes.
struct Computing {
  std::string device = config::kProcessor;    // the one that it was trained on may not be here
  std::optional<model::Precision> precision;  // none: as it was trained
  bool raw = false;  // with the weights as training left them, where a mean of them is kept
};

struct Trained {
  config::Topology topology;
  std::unique_ptr<model::Backend> backend;
  // Checked against the networks. The mean of the weights is in the place of those that it is of,
  // unless these were asked for.
  pipeline::Checkpoint checkpoint;
  // For people, what these weights are where they are a mean; "": as training left them.
  std::string mean;

  // The state of the network that makes showers.
  const pipeline::NetworkState& maker() const { return checkpoint.state.result(); }
};

// Errors: kData, no checkpoint or a damaged one; those of the topology and the backend.
runtime::Result<Trained> open_trained(const std::string& path, const Computing& computing = {});
// The same for one that makes showers, kUsage if it makes none.
runtime::Result<Trained> open_maker(const std::string& path, const Computing& computing);

// The classifier of a checkpoint, which judges the images of the topology's generator. Errors:
// those of opening it; kUsage, the checkpoint is of no classifier, or of one of other images: the
// shapes, or the units of their cells, are said.
runtime::Result<std::unique_ptr<pipeline::ImageJudge>> open_judge(const std::string& path,
                                                                  const config::Topology& judged);

// Whether the showers it was trained on came at angles that it was told.
bool knows_angles(const config::Topology& topology);

}  // namespace troupe::launch
