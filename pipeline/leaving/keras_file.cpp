#include "pipeline/leaving/keras_file.h"

#include <array>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "pipeline/checkpoint/hdf5_tree.h"
#include "pipeline/data/hdf5_writer.h"

namespace troupe::pipeline {
namespace {

using model::ParameterRole;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

// As h5py spells them.
constexpr const char* kLayerNames = "layer_names";
constexpr const char* kWeightNames = "weight_names";

// The class of Keras that a layer with parameters is of, as its names begin.
std::string keras_class(const model::LayerKind& kind) {
  if (std::holds_alternative<model::Dense>(kind)) return "dense";
  if (const auto* convolution = std::get_if<model::Convolution>(&kind)) {
    return convolution->kernel[2] == 1 ? "conv2d" : "conv3d";
  }
  return "batch_normalization";
}

// One group of the file: a layer of Keras, which may be a model of several.
struct Group {
  std::string name;
  std::vector<std::pair<std::string, const NamedParameter*>> weights;  // name in the group
};

// The layers behind the last one that flattens an image are heads.
int first_head(const model::NetworkDescription& network) {
  int first = static_cast<int>(network.layers.size());
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    if (std::holds_alternative<model::Flatten>(network.layers[i].kind)) first = static_cast<int>(i);
  }
  return first;
}

std::vector<Group> groups_of(const NetworkParameters& parameters, const std::string& around) {
  const model::NetworkDescription& network = parameters.network();
  std::map<std::string, int> counts;
  std::map<int, std::string> names;  // by layer
  std::vector<Group> groups{{around, {}}};
  const int heads = first_head(network);
  for (const NamedParameter& each : parameters.all()) {
    const int layer = each.tensor->layer;
    const model::Layer& own = network.layers[static_cast<std::size_t>(layer)];
    std::string& name = names[layer];
    if (layer < heads && name.empty()) {
      const std::string kind = keras_class(own.kind);
      name = fmt::format("{}_{}", kind, ++counts[kind]);
    } else if (name.empty()) {
      name = own.name.substr(0, own.name.rfind("_logit"));
      groups.push_back({name, {}});
    }
    const std::string role = each.tensor->name.substr(each.tensor->name.rfind('/') + 1);
    Group* group = &groups.front();
    for (Group& head : groups) {
      if (layer >= heads && head.name == name) group = &head;
    }
    group->weights.emplace_back(fmt::format("{}/{}:0", name, role), &each);
  }
  return groups;
}

std::optional<ParameterRole> role_of(const std::string& weight_name) {
  constexpr std::array kRoles{std::pair{"kernel", ParameterRole::kKernel},
                              std::pair{"bias", ParameterRole::kBias},
                              std::pair{"gamma", ParameterRole::kGamma},
                              std::pair{"beta", ParameterRole::kBeta},
                              std::pair{"moving_mean", ParameterRole::kMovingMean},
                              std::pair{"moving_variance", ParameterRole::kMovingVariance}};
  const std::string last = weight_name.substr(weight_name.rfind('/') + 1);
  const std::string role = last.substr(0, last.find(':'));
  for (const auto& [word, value] : kRoles) {
    if (role == word) return value;
  }
  return std::nullopt;
}

// A weight of a file.
struct Found {
  std::string path;
  ParameterRole role;
  std::vector<std::int64_t> shape;
};

// All weights of the file, in its order.
std::vector<Found> weights_in(Hdf5TreeReader& file) {
  const std::string root = file.contains("/model_weights") ? "/model_weights/" : "/";
  std::vector<std::string> layers;
  file.read_attribute(root == "/" ? root : "/model_weights", kLayerNames, layers);
  std::vector<Found> found;
  for (const std::string& layer : layers) {
    std::vector<std::string> weights;
    file.read_attribute(root + layer, kWeightNames, weights);
    std::map<std::string, std::vector<std::int64_t>> shapes;
    if (!weights.empty()) {
      for (const Hdf5TreeEntry& entry : file.entries(root + layer, Hdf5TreeReader::Order::kByName))
        shapes[entry.path] = entry.shape;
    }
    for (const std::string& weight : weights) {
      const auto role = role_of(weight);
      const auto shape = shapes.find(weight);
      if (!role) file.fail(fmt::format("{} is no parameter of a layer known here", weight));
      if (shape == shapes.end())
        file.fail(fmt::format("{}{} is missing", root + layer + "/", weight));
      if (role && shape != shapes.end()) {
        found.push_back({root + layer + "/" + weight, *role, shape->second});
      }
    }
  }
  return found;
}

bool is_moving(ParameterRole role) {
  return role == ParameterRole::kMovingMean || role == ParameterRole::kMovingVariance;
}

// Reads the trained or the moving ones into `values`, which they fill.
Result<void> take(Hdf5TreeReader& file, const std::string& path, const std::vector<Found>& all,
                  const std::vector<model::ParameterTensor>& tensors, bool moving,
                  std::vector<float>& values) {
  std::vector<const Found*> found;
  for (const Found& each : all) {
    if (is_moving(each.role) == moving) found.push_back(&each);
  }
  values.clear();
  for (std::size_t i = 0; i < std::max(found.size(), tensors.size()); ++i) {
    if (i >= found.size() || i >= tensors.size() || found[i]->role != tensors[i].role ||
        found[i]->shape != tensors[i].shape) {
      const std::string has = i >= found.size() ? "nothing"
                                                : fmt::format("{} of shape ({})", found[i]->path,
                                                              fmt::join(found[i]->shape, ", "));
      const std::string wants =
          i >= tensors.size()
              ? "nothing"
              : fmt::format("{} of shape ({})", tensors[i].name, fmt::join(tensors[i].shape, ", "));
      return Error{ErrorKind::kData,
                   fmt::format("{}: weights of another model: it has {} where this one has {}",
                               path, has, wants)};
    }
    file.read(found[i]->path, values);
  }
  return file.result();
}

}  // namespace

Result<runtime::Buffer> keras_file(const TrainedModel& trained, std::size_t network) {
  const bool generator = network == kGenerator;
  const NetworkParameters parameters(
      generator ? trained.gan.generator : trained.gan.discriminator,
      generator ? trained.state.generator : trained.state.discriminator);
  const auto groups = groups_of(parameters, generator ? "sequential_1" : "model_1");
  Hdf5Writer file(Hdf5Writer::Order::kByName);
  std::vector<std::string> layers;
  for (const Group& group : groups) {
    layers.push_back(group.name);
    file.add_group(group.name);
    std::vector<std::string> names;
    for (const auto& [name, parameter] : group.weights) {
      names.push_back(name);
      file.add_dataset(
          group.name + "/" + name, parameter->tensor->shape,
          std::span(parameter->values, static_cast<std::size_t>(parameter->tensor->size)));
    }
    file.add_attribute(group.name, kWeightNames, names);
  }
  file.add_attribute("/", kLayerNames, layers);
  file.add_attribute("/", "backend", std::string("tensorflow"));
  file.add_attribute("/", "keras_version", std::string("2.2.4"));
  for (const auto& [name, value] : trained.facts) file.add_attribute("/", "troupe_" + name, value);
  RETURN_IF_ERROR(file.result());
  return file.image();
}

Result<void> read_keras_file(const runtime::Buffer& file, const std::string& path,
                             const model::NetworkDescription& network, NetworkState& state) {
  Hdf5TreeReader reader(file.bytes(), path);
  const std::vector<Found> found = weights_in(reader);
  RETURN_IF_ERROR(reader.result());
  const model::ParameterLayout layout =
      model::layout_parameters(network, model::infer_shapes(network));
  RETURN_IF_ERROR(take(reader, path, found, layout.weights, false, state.weights));
  return take(reader, path, found, layout.moving, true, state.moving);
}

}  // namespace troupe::pipeline
