#pragma once

// Showers that the generator of a checkpoint makes for `troupe generate`, on one device or on
// several side by side.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "launch/run/trained.h"
#include "model/physics/observables.h"
#include "pipeline/data/condition_law.h"
#include "pipeline/data/dataset_file.h"
#include "pipeline/data/generation.h"
#include "pipeline/data/shower_file.h"

namespace troupe {

// The schema to write: that of the training data if it is one of lcd, or the one that can hold what
// the model knows.
pipeline::DataSchema written_schema(const config::Topology& topology);

struct ShowerLaws {
  pipeline::ConditionLaw energy;                                        // GeV
  pipeline::ConditionLaw angle;                                         // degrees
  std::vector<std::pair<std::string, pipeline::ConditionLaw>> columns;  // by --condition
};

// The showers that are asked for.
struct WantedShowers {
  ShowerLaws laws;
  std::uint64_t first = 0;
  std::uint64_t events = 0;
  std::uint32_t files = 1;
};

// A generator on devices of this machine that share out events evenly. One caller at a time.
class DeviceMakers {
 public:
  // One for each backend. A single one computes by the team, which has prepared its threads for it;
  // several have teams of their own, of as many threads in all, and of one at least. All outlive
  // it.
  static runtime::Result<std::unique_ptr<DeviceMakers>> create(
      const model::GanDescription& model, std::span<const model::Backend* const> backends,
      runtime::ThreadTeam& team);

  // As ShowerMaker::make(). An event does not depend on the device that makes it, as far as
  // numerics agree.
  void make(std::span<const float> weights, std::span<const float> moving,
            const pipeline::GenerationRequest& request, std::span<float> images);

  model::Shape shape() const { return all_.front()->maker->shape(); }
  std::size_t columns() const { return all_.front()->maker->columns(); }
  // That each has made, in their order.
  std::vector<std::uint64_t> events() const;

 private:
  struct Device {
    explicit Device(const model::Backend& its_backend) : backend(its_backend) {}
    const model::Backend& backend;
    std::optional<runtime::ThreadTeam> own_team;
    std::unique_ptr<pipeline::ShowerMaker> maker;
    std::uint64_t events = 0;
  };
  std::vector<std::unique_ptr<Device>> all_;
  std::optional<runtime::ThreadTeam> callers_;  // one for each device
};

// Showers in the units of the schema. Everything of an event follows from the seed and its number.
class TrainedShowers {
 public:
  // All outlive it.
  TrainedShowers(const launch::Trained& trained, DeviceMakers& makers, runtime::ThreadTeam& team,
                 const WantedShowers& wanted, std::uint64_t seed);

  // As pipeline::ShowerSource. `written` gets what each event was asked for by --condition, and
  // then the columns that were made with it.
  void make(std::uint64_t first, std::span<pipeline::Primary> primaries, std::span<float> cells,
            std::span<double> written);

  // The first that has a cell or a column which is no number.
  std::optional<std::uint64_t> bad_event() const;

 private:
  // `made`: of each event as many numbers.
  void convert(std::uint64_t first, std::size_t events, std::span<float> cells,
               std::span<const float> made);

  const launch::Trained& trained_;
  DeviceMakers& makers_;
  runtime::ThreadTeam& team_;
  const WantedShowers& wanted_;
  const std::uint64_t seed_;
  model::ImageUnits units_;
  bool with_angle_;
  std::atomic<std::uint64_t> bad_event_ = UINT64_MAX;
};

}  // namespace troupe
