#include <iostream>

#include <fmt/format.h>

#include "config/topology_file.h"
#include "config/topology_identity.h"
#include "config/workers.h"
#include "launch/run/backend_choice.h"
#include "main/command_line.h"
#include "main/common_options.h"
#include "main/files.h"
#include "pipeline/checkpoint/checkpoint.h"
#include "pipeline/leaving/keras_file.h"
#include "pipeline/leaving/warm_start.h"
#include "runtime/base/disk.h"
#include "runtime/base/json_text.h"

namespace troupe {
namespace {

using runtime::Result;

void tell_epsilons(const model::GanDescription& gan) {
  const auto epsilons = pipeline::epsilons_unlike_keras(gan);
  if (epsilons.empty()) return;
  std::cerr << fmt::format(
      "troupe: batch normalisation of these networks adds {} to the variance; if the weights were "
      "trained with another number, which Keras has as {:g} unless its network says otherwise, "
      "give it as epsilon of each batch_norm layer, else the showers are others\n",
      fmt::join(epsilons, " or "), pipeline::kKerasEpsilon);
}

// Returns the origin of the checkpoint's weights.
Result<std::string> import_weights(const CommandLine& line, const std::string& weights) {
  const auto out = line.get<std::string>("out");
  RETURN_IF_ERROR(check_output_file(out, line.get<bool>("force"),
                                    {weights, pipeline::keras_discriminator_path(weights)}));
  ASSIGN_OR_RETURN(const auto loaded,
                   config::load_topology(line.get<std::string>("model"), settings(line)));
  RETURN_IF_ERROR(config::check_printed(loaded));
  config::Topology topology = loaded.topology;
  topology.replica.device = config::kProcessor;
  ASSIGN_OR_RETURN(const auto backend, launch::make_backend(topology));
  const auto options = config::options_between_members(topology);
  ASSIGN_OR_RETURN(const auto gan, model::Gan::compile(topology.model.gan, *backend,
                                                       topology.train.options.micro_batch));
  pipeline::Checkpoint checkpoint;
  checkpoint.state = pipeline::initial_state(*gan, options, backend->numerics_class(), {});
  runtime::FileDisk disk;
  ASSIGN_OR_RETURN(checkpoint.origin,
                   pipeline::take_weights(weights, topology.model.gan, disk, checkpoint.state));
  checkpoint.topology = config::print_topology(loaded);
  checkpoint.topology_hash = config::topology_hash(loaded.topology);
  checkpoint.model = topology.model_name();
  ASSIGN_OR_RETURN(const runtime::Buffer file,
                   pipeline::encode_checkpoint(checkpoint, *gan, options));
  RETURN_IF_ERROR(disk.replace(out, file.bytes()));
  tell_epsilons(topology.model.gan);
  return checkpoint.origin;
}

int import_file(const CommandLine& line) {
  if (!line.has("model")) {
    return line.usage_error("--model: which networks? gan3d_51, or a topology file");
  }
  if (!line.has("out")) return line.usage_error("--out: which file shall be written?");
  tell_if_shipped(line.get<std::string>("model"));
  const auto origin = import_weights(line, line.get<std::string>("weights"));
  if (!origin.ok()) return report(origin.error());
  const auto out = line.get<std::string>("out");
  if (line.get<bool>("json")) {
    answer(fmt::format(R"("file":{},"origin":{})", runtime::json_string(out),
                       runtime::json_string(*origin)));
  } else {
    std::cout << out << "\n";
    std::cerr << fmt::format("troupe: {}\n", *origin);
  }
  return 0;
}

}  // namespace

Command import_verb() {
  return {
      .name = "import",
      .summary = "weights of Keras as a checkpoint",
      .about =
          "Makes a checkpoint of weights that Keras has stored (HDF5) for networks of the same "
          "layers: for troupe generate, inspect and export, and for troupe run --from. The "
          "discriminator's weights are taken from WEIGHTS_discriminator where that is there.",
      .example = "troupe import weights.h5 --model gan3d_51 --out imported.h5",
      .forms = {"WEIGHTS --model TOPOLOGY --out FILE [OPTION]..."},
      .places = {{.name = "weights", .asked = "which weights?", .takes = Takes::kFile}},
      .options = {{.name = "model",
                   .value = "TOPOLOGY",
                   .about = "whose networks these are, and whose data say what their cells are: a "
                            "topology file, or one that comes with the program",
                   .takes = Takes::kTopology},
                  setting_option(),
                  {.name = "out",
                   .value = "FILE",
                   .about = "the checkpoint to write",
                   .takes = Takes::kFile},
                  force_option(),
                  json_option()},
      .carry_out = import_file};
}

}  // namespace troupe
