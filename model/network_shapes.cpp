#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "model/layer_rules.h"
#include "model/network.h"
#include "runtime/base/nearest_word.h"

namespace troupe::model {
namespace {

constexpr std::string_view kInputName = "input";
constexpr std::string_view kConditionsName = "conditions";
constexpr std::string_view kColumnsName = "columns";
// As many layers as random streams are numbered for (streams.h), with room for two weight tensors
// each.
constexpr std::size_t kMostLayers = 2048;
constexpr int kUnresolved = -4;

class Inference {
 public:
  explicit Inference(const NetworkDescription& network)
      : network_(network), further_(further_inputs(network)) {
    result_.layers.resize(network.layers.size());
    result_.inputs.assign(network.layers.size(), kUnresolved);
    result_.others.resize(network.layers.size());
  }

  NetworkShapes infer() {
    if (!check_network()) return std::move(result_);
    index_names();
    for (std::size_t i = 0; i < network_.layers.size(); ++i) resolve_inputs(static_cast<int>(i));
    resolve_outputs();
    find_used();
    infer_layers();
    if (!result_.problems.empty()) return std::move(result_);
    check_made();
    check_columns_are_read();
    return std::move(result_);
  }

 private:
  std::string describe(int layer) const {
    const Layer& described = network_.layers[static_cast<std::size_t>(layer)];
    const std::string name =
        described.name.empty() ? fmt::format("number {}", layer + 1) : described.name;
    return fmt::format("layer {} ({})", name, kind_name(described.kind));
  }

  void problem(int layer, const std::string& text) {
    result_.problems.push_back({layer, layer < 0 ? text : describe(layer) + ": " + text});
  }

  // The further input of this name; null: the network has none.
  const FurtherInput* further(const std::string& name) const {
    const auto found = std::ranges::find(further_, name, &FurtherInput::name);
    return found == further_.end() ? nullptr : &*found;
  }

  // False when nothing further can be said.
  bool check_network() {
    if (const std::string wrong = shape_problem(network_.input); !wrong.empty()) {
      problem(-1, "the network's input: " + wrong);
      input_known_ = false;
    }
    if (network_.layers.empty()) problem(-1, "the network has no layers");
    if (network_.layers.size() > kMostLayers) {
      problem(-1, fmt::format("the network has {} layers, {} are possible", network_.layers.size(),
                              kMostLayers));
    }
    return !network_.layers.empty() && network_.layers.size() <= kMostLayers;
  }

  void index_names() {
    for (int i = 0; i < static_cast<int>(network_.layers.size()); ++i) {
      const std::string& name = network_.layers[static_cast<std::size_t>(i)].name;
      if (name.empty()) {
        problem(i, "has no name");
      } else if (name == kInputName) {
        problem(i, "\"input\" means the network's input; give the layer another name");
      } else if (further(name) != nullptr || (name == kColumnsName && !network_.makes.empty())) {
        problem(i,
                fmt::format("\"{0}\" means the network's {0}; give the layer another name", name));
      } else if (name.find('/') != std::string::npos) {
        problem(i, "a name has no \"/\": parameters are called layer/kernel");
      } else if (const auto [found, added] = indices_.emplace(name, i); !added) {
        problem(i, fmt::format("its name is taken by layer number {}; names are unique in a "
                               "network",
                               found->second + 1));
      }
    }
  }

  // "; did you mean conv1?" with the nearest name of the first `count` layers, or nothing.
  std::string suggestion(const std::string& name, std::size_t count) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) names.push_back(network_.layers[i].name);
    if (count < network_.layers.size()) {
      names.emplace_back(kInputName);
      for (const FurtherInput& input : further_) names.push_back(input.name);
    }
    const std::string meant = runtime::nearest_word(name, names);
    return meant.empty() ? std::string() : fmt::format("; did you mean {}?", meant);
  }

  void resolve_inputs(int layer) {
    const Layer& own = network_.layers[static_cast<std::size_t>(layer)];
    result_.inputs[static_cast<std::size_t>(layer)] =
        own.input.empty() ? layer - 1 : resolved(layer, own.input);
    for (const std::string& name : other_inputs(own.kind)) {
      if (name.empty()) continue;  // a problem of its options
      result_.others[static_cast<std::size_t>(layer)].push_back(resolved(layer, name));
    }
  }

  int resolved(int layer, const std::string& name) {
    if (name == kInputName) return kOfInput;
    if (const FurtherInput* input = further(name)) return input->from;
    if (const auto found = indices_.find(name); found == indices_.end()) {
      problem(layer, fmt::format("reads {}, which is no layer{}", name,
                                 suggestion(name, static_cast<std::size_t>(layer))));
    } else if (found->second >= layer) {
      problem(layer, fmt::format("reads {}, which {}; layers read only layers above them", name,
                                 found->second == layer ? "is itself" : "stands below it"));
    } else {
      return found->second;
    }
    return kUnresolved;
  }

  void resolve_outputs() {
    if (network_.outputs.empty()) {
      result_.outputs.push_back(static_cast<int>(network_.layers.size()) - 1);
    }
    for (const std::string& name : network_.outputs) {
      const auto found = indices_.find(name);
      if (found == indices_.end()) {
        problem(-1, fmt::format("output {} is no layer{}", name,
                                suggestion(name, network_.layers.size())));
      } else if (std::count(result_.outputs.begin(), result_.outputs.end(), found->second) > 0) {
        problem(-1, fmt::format("output {} is listed twice", name));
      } else {
        result_.outputs.push_back(found->second);
      }
    }
    for (const MadeColumn& made : network_.makes) resolve_made(made);
  }

  void resolve_made(const MadeColumn& made) {
    const auto wrong = [&](const std::string& text) {
      result_.problems.push_back(
          {-1, fmt::format("the layer {} of the column {} {}", made.layer, made.column, text),
           made.column});
    };
    const auto found = indices_.find(made.layer);
    if (found == indices_.end()) {
      wrong("is no layer" + suggestion(made.layer, network_.layers.size()));
    } else if (std::ranges::find(result_.outputs, found->second) != result_.outputs.end()) {
      wrong(
          "is an output already: the last layer makes the image, and each column has a layer of "
          "its own");
    } else {
      result_.outputs.push_back(found->second);
    }
  }

  void check_made() {
    for (const MadeColumn& made : network_.makes) {
      const auto found = static_cast<std::size_t>(indices_.at(made.layer));
      const Shape& shape = result_.layers[found];
      if (shape == Shape::features(1)) continue;
      result_.problems.push_back(
          {-1,
           fmt::format("the layer {} of the column {} makes {} for an event; a column is (1), one "
                       "number, as of a dense layer of one unit",
                       made.layer, made.column, shape.text()),
           made.column});
    }
  }

  // Nothing else would teach a generator what the columns are.
  void check_columns_are_read() {
    if (network_.columns.empty()) return;
    const auto reads = [](const std::vector<int>& from) {
      return std::ranges::find(from, kOfColumns) != from.end();
    };
    if (reads(result_.inputs) || std::ranges::any_of(result_.others, reads)) return;
    problem(-1, "no layer reads the network's columns; let one have `input: columns`");
  }

  // Marks the layers that outputs depend on, from the last layer to the first. An unused layer is
  // an error only if all names could be resolved.
  void find_used() {
    std::vector<bool>& used = result_.used;
    used.assign(network_.layers.size(), false);
    for (const int output : result_.outputs) used[static_cast<std::size_t>(output)] = true;
    for (std::size_t i = network_.layers.size(); i-- > 0;) {
      if (!used[i]) continue;
      if (result_.inputs[i] >= 0) used[static_cast<std::size_t>(result_.inputs[i])] = true;
      for (const int other : result_.others[i]) {
        if (other >= 0) used[static_cast<std::size_t>(other)] = true;
      }
    }
    if (!result_.problems.empty()) return;  // a name that is resolved may use it
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) {
        problem(static_cast<int>(i),
                "no output depends on it; add it to the outputs or take it out");
      }
    }
  }

  // One pass from top to bottom, since layers read only layers above them. A layer behind a faulty
  // one is skipped, so that one mistake gives one message.
  void infer_layers() {
    std::vector<bool> known(network_.layers.size(), false);
    for (std::size_t i = 0; i < network_.layers.size(); ++i) {
      const LayerKind& kind = network_.layers[i].kind;
      const std::vector<std::string> wrong = option_problems(kind);
      for (const std::string& text : wrong) problem(static_cast<int>(i), text);
      const auto is_known = [&](int input) {
        if (input == kOfInput) return input_known_;
        if (input == kUnresolved) return false;
        return input < 0 || known[static_cast<std::size_t>(input)];
      };
      const std::vector<int>& others = result_.others[i];
      const bool all_known =
          is_known(result_.inputs[i]) && std::all_of(others.begin(), others.end(), is_known);
      if (!wrong.empty() || !all_known) continue;
      std::vector<LayerSource> sources;
      for (const int other : others) sources.push_back(source_of(other));
      LayerOutput output = layer_output(kind, source_of(result_.inputs[i]), sources);
      for (const std::string& text : output.problems) problem(static_cast<int>(i), text);
      known[i] = output.problems.empty();
      result_.layers[i] = output.shape;
    }
  }

  LayerSource source_of(int input) const {
    const std::string name = name_read(network_, input);
    return {shape_read(network_, result_, input),
            input < 0 ? "the network's " + name : "layer " + name};
  }

  const NetworkDescription& network_;
  const std::vector<FurtherInput> further_;
  NetworkShapes result_;
  std::unordered_map<std::string, int> indices_;
  bool input_known_ = true;
};

}  // namespace

std::vector<FurtherInput> further_inputs(const NetworkDescription& network) {
  std::vector<FurtherInput> found;
  const auto add = [&](int from, std::string_view name, const std::vector<std::string>& numbers) {
    if (!numbers.empty()) found.push_back({from, std::string(name), std::ssize(numbers)});
  };
  add(kOfConditions, kConditionsName, network.conditions);
  add(kOfColumns, kColumnsName, network.columns);
  return found;
}

Shape shape_read(const NetworkDescription& network, const NetworkShapes& shapes, int from) {
  if (from == kOfConditions) return Shape::features(std::ssize(network.conditions));
  if (from == kOfColumns) return Shape::features(std::ssize(network.columns));
  return from == kOfInput ? network.input : shapes.layers[static_cast<std::size_t>(from)];
}

std::string name_read(const NetworkDescription& network, int from) {
  if (from == kOfConditions) return std::string(kConditionsName);
  if (from == kOfColumns) return std::string(kColumnsName);
  return from == kOfInput ? std::string(kInputName)
                          : network.layers[static_cast<std::size_t>(from)].name;
}

NetworkShapes infer_shapes(const NetworkDescription& network) { return Inference(network).infer(); }

}  // namespace troupe::model
