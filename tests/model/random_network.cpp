#include "tests/model/random_network.h"

#include <string>
#include <utility>

#include "runtime/base/random.h"

namespace troupe::model {
namespace {

class Maker {
 public:
  explicit Maker(std::uint64_t seed) { position_.seed = more_.seed = seed; }

  NetworkDescription make() {
    const int flat = chance(4) ? 2 : 3;
    rank_ = more_chance(5) ? 1 : flat;
    network_.name = "random";
    network_.input = {extent(3, 6, 1), between(1, 2), rank_};
    if (more_chance(4)) network_.conditions = {"label"};
    reads_inputs_ = rank_ == 1 || !network_.conditions.empty();
    // The networks of one axis, which cost least, have more.
    const std::int64_t layers = between(1, 14) + (rank_ == 1 ? 8 : 0);
    while (static_cast<std::int64_t>(network_.layers.size()) < layers) add_layer();
    return std::move(network_);
  }

 private:
  std::int64_t between(std::int64_t first, std::int64_t last) {
    const auto range = static_cast<std::uint32_t>(last - first + 1);
    return first + runtime::random_word(position_, next_++) % range;
  }
  bool chance(std::int64_t one_in) { return between(1, one_in) == 1; }
  // From numbers of its own, so that networks which do not come to it stay as they were.
  bool more_chance(std::uint32_t one_in) {
    return runtime::random_word(more_, next_more_++) % one_in == 0;
  }
  Extent extent(std::int64_t first, std::int64_t last, std::int64_t absent) {
    Extent drawn{absent, absent, absent};
    for (int axis = 0; axis < rank_; ++axis) {
      drawn[static_cast<std::size_t>(axis)] = between(first, last);
    }
    return drawn;
  }

  Padding padding() { return chance(2) ? Padding::kSame : Padding::kValid; }
  Axis axis() { return static_cast<Axis>(between(0, 3)); }

  Convolution strided_convolution() {
    const std::int64_t groups = chance(3) ? 2 : 1;
    Convolution convolution{groups * between(1, 2), extent(1, 3, 1), padding(), chance(2)};
    convolution.groups = groups;
    const std::int64_t which = between(1, 3);
    if (which != 1) convolution.stride = extent(1, 2, 1);
    if (which != 2) convolution.dilation = extent(1, 2, 1);
    return convolution;
  }

  TransposedConvolution transposed_convolution() {
    const Convolution like = strided_convolution();
    TransposedConvolution made{like.filters, like.kernel, like.stride, like.padding, like.bias};
    made.dilation = like.dilation;
    made.groups = like.groups;
    return made;
  }

  template <class Pool>
  Pool pool() {
    Pool made{extent(1, 2, 1)};
    if (chance(2)) made.stride = extent(1, 2, 1);
    made.padding = padding();
    return made;
  }

  Margins margins(std::int64_t most) {
    const Extent before = extent(0, most, 0);
    return chance(2) ? Margins{before} : Margins{before, extent(0, most, 0)};
  }

  Permute permute() {
    std::vector<Axis> order;
    for (int axis = 0; axis < rank_; ++axis) order.push_back(static_cast<Axis>(axis));
    order.push_back(Axis::kChannels);
    for (std::size_t i = order.size() - 1; i > 0; --i) {
      std::swap(order[i], order[static_cast<std::size_t>(between(0, static_cast<int>(i)))]);
    }
    return {order};
  }

  // The row of an event's label, or the input with its first axis and its channels exchanged.
  Layer layer_of_inputs(const std::string& name) {
    if (!network_.conditions.empty() && more_chance(2)) {
      return {name, Embedding{kLabels, more_chance(2) ? 1 : 3}, "conditions"};
    }
    Shape turned = network_.input;
    std::swap(turned.space[0], turned.channels);
    return {name, Reshape{turned}, "input"};
  }

  // The name of any layer so far, or of the input.
  std::string earlier() {
    const std::int64_t count = static_cast<std::int64_t>(network_.layers.size());
    const std::int64_t source = between(-1, count - 1);
    return source < 0 ? "input" : network_.layers[static_cast<std::size_t>(source)].name;
  }

  LayerKind kind() {
    switch (between(1, 28)) {
      case 1:
        return Dense{between(1, 4), chance(2)};
      case 2:
      case 3:
      case 4:
        return Convolution{between(1, 3), extent(1, 3, 1), padding(), chance(2)};
      case 17:
      case 18:
        return strided_convolution();
      case 19:
        return transposed_convolution();
      case 20:
        return chance(2) ? LayerKind{pool<MaxPool>()} : LayerKind{Crop{margins(1)}};
      case 21:
        return chance(2) ? LayerKind{GlobalAveragePool{}} : LayerKind{GlobalMaxPool{}};
      case 22:
        return chance(2) ? LayerKind{LayerNorm{0.1}} : LayerKind{InstanceNorm{0.1}};
      case 23:
        return chance(2) ? LayerKind{GroupNorm{between(1, 3), 0.1}} : LayerKind{Softmax{}};
      case 24:
        return chance(2) ? LayerKind{permute()}
                         : LayerKind{Slice{axis(), between(0, 1), between(1, 2)}};
      case 25:
        return chance(2) ? LayerKind{Add{{earlier(), earlier()}}} : LayerKind{Multiply{earlier()}};
      case 26:
        return Concatenate{{earlier()}, axis()};
      case 27:  // what attention may read
        return Convolution{6, extent(1, 1, 1), Padding::kValid, chance(2)};
      case 28:
        return Attention{between(1, 2)};
      case 5:
      case 6:
        return Pad{margins(2)};
      case 7:
        return Upsample{extent(1, 2, 1)};
      case 8:
        return pool<AveragePool>();
      case 9:
        return BatchNorm{0.99, 0.1};
      case 10:
        return Dropout{chance(3) ? 0.0 : 0.25};
      case 11:
      case 12:
      case 13:
        return Activation{static_cast<ActivationKind>(between(0, 8)), 0.3};
      case 14:
        return Flatten{};
      case 15:
        return chance(2) ? LayerKind{Sum{}} : LayerKind{Power{1.5}};
      default:
        return chance(2) ? LayerKind{Angle{}} : LayerKind{Bins{}};
    }
  }

  // Adds a layer that reads the last one, any other or the input; outputs are the layers nobody
  // reads and some of the others. An addition that cannot be is taken back.
  void add_layer() {
    NetworkDescription grown = network_;
    const std::string name = "layer" + std::to_string(grown.layers.size());
    Layer layer;
    if (reads_inputs_ && more_chance(5)) {
      layer = layer_of_inputs(name);
    } else {
      layer = {name, kind(), ""};
      if (!grown.layers.empty() && chance(4)) layer.input = earlier();
    }
    grown.layers.push_back(std::move(layer));
    keep_output_.push_back(chance(6));
    list_outputs(grown);
    if (infer_shapes(grown).problems.empty()) {
      network_ = std::move(grown);
    } else {
      keep_output_.pop_back();
    }
  }

  void list_outputs(NetworkDescription& network) const {
    std::vector<bool> wanted = keep_output_;
    network.outputs.clear();
    for (const Layer& layer : network.layers) network.outputs.push_back(layer.name);
    const NetworkShapes shapes = infer_shapes(network);
    std::vector<bool> is_read(wanted.size(), false);
    const auto read = [&](const std::vector<int>& inputs) {
      for (const int input : inputs) {
        if (input >= 0) is_read[static_cast<std::size_t>(input)] = true;
      }
    };
    read(shapes.inputs);
    for (const auto& others : shapes.others) read(others);
    network.outputs.clear();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] || !is_read[i]) network.outputs.push_back(network.layers[i].name);
    }
  }

  NetworkDescription network_;
  int rank_ = 3;
  bool reads_inputs_ = false;
  std::vector<bool> keep_output_;
  runtime::RandomPosition position_, more_{.stream = 1};
  std::uint32_t next_ = 0, next_more_ = 0;
};

}  // namespace

NetworkDescription random_network(std::uint64_t seed) { return Maker(seed).make(); }

}  // namespace troupe::model
