#include "model/graph.h"

#include <algorithm>

#include "model/layer_rules.h"

namespace troupe::model {
namespace {

class GraphMaker {
 public:
  GraphMaker(const NetworkDescription& network, const NetworkShapes& shapes, std::int64_t batch,
             Mode mode)
      : network_(network),
        shapes_(shapes),
        batch_(batch),
        mode_(mode),
        readers_(network.layers.size(), 0),
        output_of_(network.layers.size(), -1),
        absorbed_(network.layers.size(), false),
        fused_(network.layers.size()),
        value_of_(network.layers.size(), -1) {}

  Graph make() {
    const auto add_reader = [&](int input) {
      if (input >= 0) ++readers_[index(input)];
    };
    for (const int input : shapes_.inputs) add_reader(input);
    for (const auto& others : shapes_.others) {
      for (const int other : others) add_reader(other);
    }
    for (std::size_t i = 0; i < shapes_.outputs.size(); ++i) {
      output_of_[index(shapes_.outputs[i])] = static_cast<int>(i);
    }
    for (int layer = 0; layer < layers(); ++layer) absorb_into_convolution(layer);
    graph_.values.push_back({kOfInput, batch_ * network_.input.elements(), -1});
    for (const FurtherInput& further : further_inputs(network_)) {
      graph_.values.push_back({further.from, batch_ * further.features, -1});
    }
    graph_.outputs.assign(shapes_.outputs.size(), -1);
    for (int layer = 0; layer < layers(); ++layer) add_layer(layer);
    return std::move(graph_);
  }

 private:
  static std::size_t index(int layer) { return static_cast<std::size_t>(layer); }
  int layers() const { return static_cast<int>(network_.layers.size()); }
  const LayerKind& kind(int layer) const { return network_.layers[index(layer)].kind; }
  Shape shape(int layer) const { return shape_read(network_, shapes_, layer); }
  int value(int layer) const {
    if (layer >= 0) return value_of_[index(layer)];
    const auto input = std::ranges::find(graph_.values, layer, &Value::layer);
    return static_cast<int>(input - graph_.values.begin());
  }

  // True if only one layer reads the result, and it is no output of the network.
  bool is_private(int layer) const {
    return readers_[index(layer)] == 1 && output_of_[index(layer)] < 0;
  }

  template <class Kind>
  bool is_private(int layer) const {
    return layer >= 0 && std::holds_alternative<Kind>(kind(layer)) && is_private(layer);
  }

  // Marks the layers that become part of a convolution. Only a layer whose result no one else reads
  // can vanish. Pads are absorbed from the convolution upwards, and an upsampling only behind them,
  // which is the order in which a kernel can apply both.
  void absorb_into_convolution(int layer) {
    const int input = shapes_.inputs[index(layer)];
    if (absorbs(layer)) {
      int before = input;
      for (; is_private<Pad>(before); before = shapes_.inputs[index(before)]) {
        absorbed_[index(before)] = true;
      }
      if (is_private<Upsample>(before) && touches_all_cells(layer)) {
        absorbed_[index(before)] = true;
      }
    }
    const auto* activation = std::get_if<Activation>(&kind(layer));
    if (activation == nullptr || input < 0 || !is_private(input)) return;
    if (!absorbs(input)) return;
    if (activation->kind != ActivationKind::kRelu &&
        activation->kind != ActivationKind::kLeakyRelu) {
      return;
    }
    fused_[index(input)] = *activation;
    absorbed_[index(layer)] = true;
  }

  bool absorbs(int layer) const {
    const auto* convolution = std::get_if<Convolution>(&kind(layer));
    return convolution != nullptr && !is_cell_by_cell(*convolution);
  }
  // True if the convolution has neither stride nor dilation.
  bool touches_all_cells(int layer) const {
    const auto& convolution = std::get<Convolution>(kind(layer));
    constexpr Extent kNone{1, 1, 1};
    return convolution.stride == kNone && convolution.dilation == kNone;
  }

  template <class Kind>
  bool is_absorbed(int layer) const {
    return layer >= 0 && absorbed_[index(layer)] && std::holds_alternative<Kind>(kind(layer));
  }

  bool computes_nothing(int layer) const {
    if (absorbed_[index(layer)]) return true;
    if (const auto* activation = std::get_if<Activation>(&kind(layer))) {
      return activation->kind == ActivationKind::kLinear;
    }
    if (const auto* pad = std::get_if<Pad>(&kind(layer))) return pad->amount == Margins{};
    if (const auto* crop = std::get_if<Crop>(&kind(layer))) return crop->amount == Margins{};
    if (const auto* dropout = std::get_if<Dropout>(&kind(layer))) {
      return mode_ == Mode::kInference || dropout->rate == 0.0;
    }
    return std::holds_alternative<Reshape>(kind(layer)) ||
           std::holds_alternative<Flatten>(kind(layer));
  }

  void add_layer(int layer) {
    int& made = value_of_[index(layer)];
    if (computes_nothing(layer)) {
      made = value(shapes_.inputs[index(layer)]);
    } else {
      made = compute(layer, kind(layer), shapes_.inputs[index(layer)]);
    }
    const int output = output_of_[index(layer)];
    if (output < 0) return;
    // The value is an input of the network or already another output, so the layer gets a copy of
    // its own.
    if (graph_.values[index(made)].layer < 0 || graph_.values[index(made)].output >= 0) {
      made = compute(layer, Activation{}, shapes_.inputs[index(layer)]);
    }
    graph_.values[index(made)].output = output;
    graph_.outputs[index(output)] = made;
  }

  // A convolution reads what its absorbed layers read: pads add up from the convolution upwards,
  // and an upsampling stands behind them.
  int compute(int layer, const LayerKind& kind, int input) {
    Computation computation;
    computation.layer = layer;
    computation.kind = kind;
    if (std::holds_alternative<Convolution>(kind)) {
      computation.fused = fused_[index(layer)];
      for (; is_absorbed<Pad>(input); input = shapes_.inputs[index(input)]) {
        const Margins& amount = std::get<Pad>(this->kind(input)).amount;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          computation.extra_pad.before[axis] += amount.before[axis];
          computation.extra_pad.behind[axis] += amount.behind[axis];
        }
      }
      if (is_absorbed<Upsample>(input)) {
        computation.upsample = std::get<Upsample>(this->kind(input)).factor;
        input = shapes_.inputs[index(input)];
      }
    }
    computation.input = value(input);
    computation.input_shape = shape(input);
    computation.output_shape = shape(layer);
    if (!other_inputs(kind).empty()) {
      for (const int other : shapes_.others[index(layer)]) {
        computation.others.push_back(value(other));
        computation.other_shapes.push_back(shape(other));
      }
    }
    computation.output = static_cast<int>(graph_.values.size());
    graph_.values.push_back({layer, batch_ * shape(layer).elements(), -1});
    graph_.computations.push_back(computation);
    return computation.output;
  }

  const NetworkDescription& network_;
  const NetworkShapes& shapes_;
  const std::int64_t batch_;
  const Mode mode_;
  std::vector<int> readers_;
  std::vector<int> output_of_;
  std::vector<bool>
      absorbed_;  // pads, upsampling and activations that became part of a convolution
  std::vector<Activation> fused_;
  std::vector<int> value_of_;
  Graph graph_;
};

}  // namespace

Graph make_graph(const NetworkDescription& network, const NetworkShapes& shapes, std::int64_t batch,
                 Mode mode) {
  return GraphMaker(network, shapes, batch, mode).make();
}

}  // namespace troupe::model
