#include "launch/run/trained.h"

#include <utility>

#include <fmt/format.h>

#include "config/topology_file.h"
#include "config/workers.h"
#include "launch/run/backend_choice.h"
#include "model/layer_rules.h"
#include "runtime/base/disk.h"

namespace troupe::launch {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

// The tensors of a checkpoint can be read only for compiled networks, and these stand in its
// topology, so its summary is read first.
Result<Trained> open_trained(const std::string& path, const Computing& computing) {
  runtime::FileDisk disk;
  ASSIGN_OR_RETURN(const runtime::Buffer file, disk.read(path));
  ASSIGN_OR_RETURN(const auto summary, pipeline::inspect_checkpoint(file, path));
  ASSIGN_OR_RETURN(auto loaded, config::parse_topology(summary.topology, path + ":/topology", "."));
  Trained trained;
  trained.topology = std::move(loaded.topology);
  trained.topology.replica.device = computing.device;
  if (computing.precision) trained.topology.model.precision = *computing.precision;
  ASSIGN_OR_RETURN(trained.backend, make_backend(trained.topology));
  const auto& options = trained.topology.train.options;
  ASSIGN_OR_RETURN(const auto gan, model::Gan::compile(trained.topology.model.gan, *trained.backend,
                                                       options.micro_batch));
  ASSIGN_OR_RETURN(trained.checkpoint,
                   pipeline::decode_checkpoint(file, path, *gan,
                                               config::options_between_members(trained.topology)));
  pipeline::TrainingState& state = trained.checkpoint.state;
  if (computing.raw) state.mean.reset();
  if (state.mean) {
    trained.mean = fmt::format("their exponential mean, decay {}", options.mean->decay);
  }
  pipeline::put_mean_in_place(state);
  return trained;
}

Result<Trained> open_maker(const std::string& path, const Computing& computing) {
  ASSIGN_OR_RETURN(Trained trained, open_trained(path, computing));
  if (trained.topology.model.gan.task != model::Task::kSupervised) return trained;
  return Error{ErrorKind::kUsage,
               path +
                   ": is of a supervised task, which has no generator; troupe export "
                   "writes its network"};
}

Result<std::unique_ptr<pipeline::ImageJudge>> open_judge(const std::string& path,
                                                         const config::Topology& judged) {
  Computing computing;
  computing.precision = model::Precision::kFp32;
  ASSIGN_OR_RETURN(const Trained trained, open_trained(path, computing));
  const config::Topology& own = trained.topology;
  const auto refused = [&](const std::string& why) {
    return Error{ErrorKind::kUsage, fmt::format("{} {}", path, why)};
  };
  const pipeline::NetworkState& network = trained.checkpoint.state.result();
  auto judge = pipeline::ImageJudge::create(own.model.gan, {network.weights, network.moving});
  if (!judge.ok()) return refused(judge.error().message);
  const model::Shape reads = (*judge)->image_shape(), makes = image_shape(judged.model.gan);
  if (reads != makes) {
    return refused(
        model::told_apart("judges images that have", reads, "the ones to be judged have", makes));
  }
  const model::ImageUnits of_own = pipeline::image_units(own.data.dataset),
                          of_judged = pipeline::image_units(judged.data.dataset);
  if (of_own.power != of_judged.power || of_own.units_per_gev != of_judged.units_per_gev) {
    return refused(fmt::format(
        "was trained on cells to the power {} of {} per GeV; the ones to be judged have power {} "
        "and {} per GeV",
        of_own.power, of_own.units_per_gev, of_judged.power, of_judged.units_per_gev));
  }
  return judge;
}

bool knows_angles(const config::Topology& topology) {
  const pipeline::DatasetOptions& dataset = topology.data.dataset;
  const auto names = dataset.names.value_or(pipeline::default_names(dataset.schema));
  return model::uses_angle(topology.model.gan.latent) && !names.angle.empty();
}

}  // namespace troupe::launch
