#include "pipeline/leaving/keras_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

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

// The most bytes of an attribute. Keras spreads longer lists over attributes NAME0, NAME1 ...
constexpr std::size_t kMostAttributeBytes = 64512;

void add_names(Hdf5Writer& file, const std::string& object, const std::string& name,
               const std::vector<std::string>& values) {
  std::size_t longest = 1;
  for (const std::string& value : values) longest = std::max(longest, value.size());
  const std::size_t parts =
      (values.size() * longest + kMostAttributeBytes - 1) / kMostAttributeBytes;
  if (parts <= 1) return file.add_attribute(object, name, values);
  const std::size_t each = std::max<std::size_t>(1, kMostAttributeBytes / longest);
  for (std::size_t first = 0, part = 0; first < values.size(); first += each, ++part) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end =
        values.begin() + static_cast<std::ptrdiff_t>(std::min(first + each, values.size()));
    file.add_attribute(object, fmt::format("{}{}", name, part), std::vector(begin, end));
  }
}

// The same of one text, which is cut between characters.
void add_text(Hdf5Writer& file, const std::string& name, const std::string& text) {
  if (text.size() < kMostAttributeBytes) return file.add_attribute("/", name, text);
  const auto inside = [&](std::size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  for (std::size_t first = 0, part = 0; first < text.size(); ++part) {
    std::size_t end = std::min(first + kMostAttributeBytes - 1, text.size());
    while (inside(end) && end > first + kMostAttributeBytes - 4) --end;
    file.add_attribute("/", fmt::format("{}{}", name, part), text.substr(first, end - first));
    first = end;
  }
}

// The names that add_names() has written, or Keras.
std::vector<std::string> names_in(Hdf5TreeReader& file, const std::string& object,
                                  const std::string& name) {
  std::vector<std::string> names;
  const auto part_name = [&](std::size_t part) { return fmt::format("{}{}", name, part); };
  if (file.has_attribute(object, name) || !file.has_attribute(object, part_name(0))) {
    file.read_attribute(object, name, names);
    return names;
  }
  for (std::size_t part = 0; file.has_attribute(object, part_name(part)); ++part) {
    std::vector<std::string> some;
    file.read_attribute(object, part_name(part), some);
    names.insert(names.end(), some.begin(), some.end());
  }
  return names;
}

// The class of Keras that a layer with parameters is of, as its names begin.
std::string keras_class(const model::LayerKind& kind) {
  if (std::holds_alternative<model::Dense>(kind)) return "dense";
  if (const auto* convolution = std::get_if<model::Convolution>(&kind)) {
    return convolution->kernel[2] == 1 ? "conv2d" : "conv3d";
  }
  if (std::holds_alternative<model::LayerNorm>(kind)) return "layer_normalization";
  if (std::holds_alternative<model::GroupNorm>(kind)) return "group_normalization";
  if (const auto* transposed = std::get_if<model::TransposedConvolution>(&kind)) {
    return transposed->kernel[2] == 1 ? "conv2d_transpose" : "conv3d_transpose";
  }
  if (std::holds_alternative<model::BatchNorm>(kind)) return "batch_normalization";
  return model::kind_name(kind);  // embedding; Keras has no instance norm
}

// One group of the file: a layer of Keras, which may be a model of several.
struct Group {
  std::string name;
  std::vector<std::pair<std::string, const NamedParameter*>> weights;  // name in the group
};

// The layers behind the last one that flattens an image are a discriminator's heads. A generator
// has none.
int first_head(const model::NetworkDescription& network, bool generator) {
  int first = static_cast<int>(network.layers.size());
  for (std::size_t i = 0; i < network.layers.size() && !generator; ++i) {
    if (std::holds_alternative<model::Flatten>(network.layers[i].kind)) first = static_cast<int>(i);
  }
  return first;
}

// Heads are called as 3DGAN's are, whose activations belong to the layer before.
std::string head_name(const std::string& layer, std::set<std::string>& taken) {
  constexpr std::string_view kLogit = "_logit";
  std::string name = layer;
  if (name.ends_with(kLogit)) name.resize(name.size() - kLogit.size());
  if (taken.count(name) > 0) name = layer;
  while (!taken.insert(name).second) name += "_1";
  return name;
}

std::vector<Group> groups_of(const NetworkParameters& parameters, bool generator) {
  const model::NetworkDescription& network = parameters.network();
  struct Place {
    std::size_t group;
    std::string name;
  };
  std::map<std::string, int> counts;
  std::map<int, Place> places;  // by layer
  std::vector<Group> groups{{generator ? "sequential_1" : "model_1", {}}};
  std::set<std::string> taken{groups.front().name};
  const int heads = first_head(network, generator);
  for (const NamedParameter& each : parameters.all()) {
    const int layer = each.tensor->layer;
    const model::Layer& own = network.layers[static_cast<std::size_t>(layer)];
    auto place = places.find(layer);
    if (place == places.end() && layer < heads) {
      const std::string kind = keras_class(own.kind);
      place = places.emplace(layer, Place{0, fmt::format("{}_{}", kind, ++counts[kind])}).first;
    } else if (place == places.end()) {
      place = places.emplace(layer, Place{groups.size(), head_name(own.name, taken)}).first;
      groups.push_back({place->second.name, {}});
    }
    const std::string role = each.tensor->name.substr(each.tensor->name.rfind('/') + 1);
    const auto& [group, name] = place->second;
    groups[group].weights.emplace_back(fmt::format("{}/{}:0", name, role), &each);
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

// The weights of the file in its order, or the first `most` of them.
std::vector<Found> weights_in(Hdf5TreeReader& file, std::size_t most) {
  const std::string root = file.contains("/model_weights") ? "/model_weights/" : "/";
  const auto layers = names_in(file, root == "/" ? root : "/model_weights", kLayerNames);
  std::vector<Found> found;
  for (const std::string& layer : layers) {
    const auto weights = names_in(file, root + layer, kWeightNames);
    for (const std::string& weight : weights) {
      if (found.size() == most || !file.result().ok()) return found;
      const std::string path = root + layer + "/" + weight;
      const auto role = role_of(weight);
      const auto shape = file.shape(path);
      if (!role) file.fail(fmt::format("{} is no parameter of a layer known here", weight));
      if (!shape) file.fail(path + " is missing");
      if (role && shape) found.push_back({path, *role, *shape});
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
    const std::size_t first = values.size();
    file.read(found[i]->path, values);
    RETURN_IF_ERROR(file.result());
    const auto read = std::span(values).subspan(first);
    if (!std::ranges::all_of(read, [](float value) { return std::isfinite(value); })) {
      return Error{ErrorKind::kData,
                   fmt::format("{}: {} has numbers that are not finite, of a training that broke "
                               "down; take weights of before",
                               path, found[i]->path)};
    }
  }
  return file.result();
}

}  // namespace

Result<runtime::Buffer> keras_file(const TrainedModel& trained, std::size_t network) {
  const bool generator = network == kGenerator;
  const NetworkParameters parameters(
      generator ? trained.gan.generator : trained.gan.discriminator,
      generator ? trained.state.generator : trained.state.discriminator);
  const auto groups = groups_of(parameters, generator);
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
    add_names(file, group.name, kWeightNames, names);
  }
  add_names(file, "/", kLayerNames, layers);
  file.add_attribute("/", "backend", std::string("tensorflow"));
  file.add_attribute("/", "keras_version", std::string("2.2.4"));
  for (const auto& [name, value] : trained.facts) add_text(file, "troupe_" + name, value);
  RETURN_IF_ERROR(file.result());
  return file.image();
}

std::set<double> epsilons_unlike_keras(const model::GanDescription& gan) {
  std::set<double> found;
  for (const auto* network : {&gan.generator, &gan.discriminator}) {
    for (const auto& layer : network->layers) {
      const auto* norm = std::get_if<model::BatchNorm>(&layer.kind);
      if (norm != nullptr && norm->epsilon != kKerasEpsilon) found.insert(norm->epsilon);
    }
  }
  return found;
}

Result<void> read_keras_file(const runtime::Buffer& file, const std::string& path,
                             const model::NetworkDescription& network, NetworkState& state) {
  Hdf5TreeReader reader(file.bytes(), path);
  const model::ParameterLayout layout =
      model::layout_parameters(network, model::infer_shapes(network));
  // One more than there should be is enough to tell it.
  const std::vector<Found> found =
      weights_in(reader, layout.weights.size() + layout.moving.size() + 1);
  RETURN_IF_ERROR(reader.result());
  RETURN_IF_ERROR(take(reader, path, found, layout.weights, false, state.weights));
  return take(reader, path, found, layout.moving, true, state.moving);
}

}  // namespace troupe::pipeline
