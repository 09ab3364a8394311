#include "pipeline/leaving/warm_start.h"

#include <array>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "pipeline/checkpoint/checkpoint.h"
#include "pipeline/checkpoint/checkpoint_seal.h"
#include "pipeline/leaving/keras_file.h"
#include "pipeline/steps/turn_update.h"
#include "runtime/base/hash.h"

namespace troupe::pipeline {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

// Whether `found`, the tensors of a checkpoint, begin with those of a network in their order;
// weights and moving statistics are told apart by their paths.
Result<void> check_network(const CheckpointSummary& found, std::size_t network,
                           const model::ParameterLayout& layout) {
  const std::string group = fmt::format("/{}/", kNetworkNames[network]);
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> wanted, has;
  for (const auto* tensors : {&layout.weights, &layout.moving}) {
    for (const auto& tensor : *tensors) wanted.emplace_back(group + tensor.name, tensor.shape);
  }
  for (const CheckpointTensor& tensor : found.tensors) {
    if (tensor.path.starts_with(group)) has.emplace_back(tensor.path, tensor.shape);
  }
  const auto text = [](const auto& tensors, std::size_t i) {
    if (i >= tensors.size()) return std::string("nothing");
    return fmt::format("{} of shape ({})", tensors[i].first, fmt::join(tensors[i].second, ", "));
  };
  for (std::size_t i = 0; i < std::max(wanted.size(), has.size()); ++i) {
    if (i < wanted.size() && i < has.size() && wanted[i] == has[i]) continue;
    return Error{ErrorKind::kData,
                 fmt::format("{}: weights of another model: it has {} where this one has {}",
                             found.path, text(has, i), text(wanted, i))};
  }
  return {};
}

Result<std::string> take_checkpoint(const runtime::Buffer& file, const std::string& path,
                                    const model::GanDescription& gan, TrainingState& state) {
  ASSIGN_OR_RETURN(CheckpointSummary found, inspect_checkpoint(file, path));
  if (found.recomputed_hash != found.state_hash) {
    return Error{ErrorKind::kData,
                 fmt::format("{}: its state has hash {}, it says {}: a defect wrote it", path,
                             found.recomputed_hash.text(), found.state_hash.text())};
  }
  const std::array networks{&gan.generator, &gan.discriminator};
  for (std::size_t i = 0; i < networks.size(); ++i) {
    if (networks[i]->layers.empty()) continue;  // a task of one network has no generator
    const auto layout = model::layout_parameters(*networks[i], model::infer_shapes(*networks[i]));
    RETURN_IF_ERROR(check_network(found, i, layout));
  }
  const std::array into_from{std::pair{&state.generator, &found.state.generator},
                             std::pair{&state.discriminator, &found.state.discriminator}};
  for (std::size_t i = 0; i < networks.size(); ++i) {
    if (networks[i]->layers.empty()) continue;
    const auto [into, from] = into_from[i];
    into->weights = std::move(from->weights);
    into->moving = std::move(from->moving);
  }
  return fmt::format("{} from the checkpoint {} (model {}, iteration {}, state hash {}){}",
                     gan.task != model::Task::kGan ? "the network" : "both networks", path,
                     found.model, found.state.iteration, found.state_hash.text(),
                     found.origin.empty() ? "" : ", which began with " + found.origin);
}

std::string hash_text(const runtime::Buffer& file) { return runtime::hash_of(file.bytes()).text(); }

Result<std::string> take_keras(const runtime::Buffer& file, const std::string& path,
                               const model::GanDescription& gan, runtime::Disk& disk,
                               TrainingState& state) {
  if (gan.task != model::Task::kGan) {
    RETURN_IF_ERROR(read_keras_file(file, path, gan.discriminator, state.discriminator));
    return fmt::format("the network from the Keras file {} (XXH128 {})", path, hash_text(file));
  }
  RETURN_IF_ERROR(read_keras_file(file, path, gan.generator, state.generator));
  const std::string generator =
      fmt::format("the generator from the Keras file {} (XXH128 {})", path, hash_text(file));
  const std::string beside = keras_discriminator_path(path);
  std::error_code ignored;
  if (!std::filesystem::exists(beside, ignored)) {
    return generator + ", the discriminator by the seed, as there is no " + beside;
  }
  ASSIGN_OR_RETURN(const runtime::Buffer other, disk.read(beside));
  RETURN_IF_ERROR(read_keras_file(other, beside, gan.discriminator, state.discriminator));
  return fmt::format("{}, the discriminator from {} (XXH128 {})", generator, beside,
                     hash_text(other));
}

}  // namespace

std::string keras_discriminator_path(const std::string& path) {
  std::filesystem::path file(path);
  const auto extension = file.extension();
  return file.replace_extension().string() + "_discriminator" + extension.string();
}

Result<std::string> take_weights(const std::string& path, const model::GanDescription& gan,
                                 runtime::Disk& disk, TrainingState& state) {
  ASSIGN_OR_RETURN(const runtime::Buffer file, disk.read(path));
  auto taken = is_sealed(file) ? take_checkpoint(file, path, gan, state)
                               : take_keras(file, path, gan, disk, state);
  if (taken.ok() && state.turns) begin_workers(state);
  if (taken.ok() && state.mean) state.mean = mean_of(state.network(state.result_number()));
  return taken;
}

}  // namespace troupe::pipeline
