#pragma once

// Showers from a trained generator, or from noise by the network of a diffusion task: inference
// mode, noise by event, so that a shower depends on the weights, its conditions, the seed and its
// number alone, not on batches or threads.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/backend.h"
#include "model/gan.h"
#include "model/physics/observables.h"
#include "model/program.h"
#include "pipeline/data/dataset_options.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"
#include "runtime/base/thread_team.h"

namespace troupe::pipeline {

struct GenerationRequest {
  std::span<const float> energies;  // E / 100 GeV
  std::span<const float> angles;    // rad; same size, or empty for models without angle
  // As many for each of model::columns_of(latent), in order.
  std::vector<std::span<const float>> columns = {};
  std::uint64_t seed = 1;
  std::uint64_t first_event = 0;  // number of the first one, for the noise
  // Receives (events, ShowerMaker::columns()), what is made besides the images; empty: nobody asks.
  std::span<float> made = {};
};

// The same for `count` of its events from number `first` on.
GenerationRequest part_of(const GenerationRequest& all, std::size_t first, std::size_t count);

// Where the random numbers of an event are drawn.
runtime::RandomPosition event_position(std::uint64_t seed, std::uint64_t event,
                                       std::uint32_t stream);

// One caller at a time; the team's threads compute.
class ShowerMaker {
 public:
  // Model, backend and team outlive it; the team has prepared its threads for the backend.
  static runtime::Result<std::unique_ptr<ShowerMaker>> create(const model::GanDescription& model,
                                                              const model::Backend& backend,
                                                              runtime::ThreadTeam& team);

  // `images` receives (events, x, y, z) in the network's units. `weights` and `moving` as
  // NetworkState has them. `going_on`, if set, is asked with the events done between batches, and
  // between the steps of a diffusion task's; false ends the work early. Returns how many events
  // were made, from the front.
  std::size_t make(std::span<const float> weights, std::span<const float> moving,
                   const GenerationRequest& request, std::span<float> images,
                   const std::function<bool(std::size_t done)>& going_on = {});

  std::int64_t cells() const { return program_->output_shape(0).elements(); }
  model::Shape shape() const { return program_->output_shape(0); }
  // That the generator makes, in the order of the discriminator's.
  std::size_t columns() const { return model_.discriminator.columns.size(); }

 private:
  ShowerMaker(const model::GanDescription& model, std::unique_ptr<const model::Program> program,
              runtime::ThreadTeam& team);
  // Shares out events in batches over the threads.
  using BatchWork =
      std::function<void(std::size_t first, std::size_t events, model::Workspace& workspace)>;
  void run_batches(std::size_t events, const BatchWork& work);
  void generate_batch(const model::Bindings& parameters, const GenerationRequest& request,
                      std::size_t first, std::span<float> images,
                      model::Workspace& workspace) const;
  // False, and images that are not done, if going_on() says so between two steps.
  bool denoise(const model::Bindings& parameters, const GenerationRequest& request,
               std::size_t first, std::span<float> images, const std::function<bool()>& going_on);
  // Takes one step. An event has its conditions, in the latent's order.
  void denoise_batch(const model::Bindings& parameters, const model::SamplerStep& step,
                     std::span<const std::vector<float>> conditions, std::span<float> images,
                     std::span<float> before, model::Workspace& workspace) const;
  // Takes the batch's input, computes it, and returns the outputs of the first events.
  void compute(const model::Bindings& parameters, std::span<const float> input,
               std::span<float> outputs, model::Workspace& workspace) const;

  const model::GanDescription& model_;
  std::unique_ptr<const model::Program> program_;
  runtime::ThreadTeam& team_;
  std::size_t batch_;                         // events that one thread makes at a time
  std::vector<model::Workspace> workspaces_;  // one per thread
  // Parameters in the memory of a device; null on the host.
  std::shared_ptr<std::byte> weights_, moving_;
};

// The units of images that a dataset of these options gives: its preprocessing (must be set) on top
// of the schema's own (GeV x 50 in lcd-angle, GeV elsewhere).
model::ImageUnits image_units(const DatasetOptions& options);

}  // namespace troupe::pipeline
