#include "model/network.h"

namespace troupe::model {
namespace {

class Layout {
 public:
  Layout(const NetworkDescription& network, const NetworkShapes& shapes)
      : network_(network), shapes_(shapes) {}

  ParameterLayout lay_out() {
    for (layer_ = 0; layer_ < static_cast<int>(network_.layers.size()); ++layer_) {
      input_ = shape_read(network_, shapes_, shapes_.inputs[static_cast<std::size_t>(layer_)]);
      std::visit(*this, network_.layers[static_cast<std::size_t>(layer_)].kind);
    }
    return std::move(result_);
  }

  void operator()(const Dense& dense) {
    const std::int64_t inputs = input_.elements();
    kernel({inputs, dense.units}, dense.initialiser, inputs, dense.units);
    if (dense.bias) weight("bias", ParameterRole::kBias, dense.units, Initialiser::kZeros);
  }

  void operator()(const Convolution& convolution) {
    const std::int64_t filters = convolution.filters;
    // The kernel's shape has only the axes of the image. The fans are the numbers that one output
    // sums, and the outputs that one number of the input reaches.
    std::vector<std::int64_t> shape = taps_of(convolution.kernel);
    const std::int64_t taps = product(shape), channels = input_.channels / convolution.groups;
    shape.push_back(channels);
    shape.push_back(filters);
    kernel(std::move(shape), convolution.initialiser, taps * channels, taps * filters);
    if (convolution.bias) weight("bias", ParameterRole::kBias, filters, Initialiser::kZeros);
  }

  // Fans as Keras has them, which takes a kernel's last two axes for in and out.
  void operator()(const TransposedConvolution& convolution) {
    std::vector<std::int64_t> shape = taps_of(convolution.kernel);
    const std::int64_t taps = product(shape), filters = convolution.filters / convolution.groups;
    shape.push_back(filters);
    shape.push_back(input_.channels);
    kernel(std::move(shape), convolution.initialiser, taps * filters, taps * input_.channels);
    if (convolution.bias) {
      weight("bias", ParameterRole::kBias, convolution.filters, Initialiser::kZeros);
    }
  }

  void operator()(const Embedding& embedding) {
    kernel({embedding.classes, embedding.units}, embedding.initialiser, embedding.classes,
           embedding.units);
  }

  void operator()(const LayerNorm&) { gamma_and_beta(); }
  void operator()(const InstanceNorm&) { gamma_and_beta(); }
  void operator()(const GroupNorm&) { gamma_and_beta(); }
  void operator()(const BatchNorm&) {
    gamma_and_beta();
    moving("moving_mean", ParameterRole::kMovingMean, Initialiser::kZeros);
    moving("moving_variance", ParameterRole::kMovingVariance, Initialiser::kOnes);
  }

  template <class Other>
  void operator()(const Other&) {}

 private:
  std::string name(const char* role) const {
    return network_.layers[static_cast<std::size_t>(layer_)].name + "/" + role;
  }

  std::vector<std::int64_t> taps_of(const Extent& kernel) const {
    return {kernel.begin(), kernel.begin() + input_.spatial_rank};
  }
  static std::int64_t product(const std::vector<std::int64_t>& factors) {
    std::int64_t product = 1;
    for (const std::int64_t factor : factors) product *= factor;
    return product;
  }

  void gamma_and_beta() {
    weight("gamma", ParameterRole::kGamma, input_.channels, Initialiser::kOnes);
    weight("beta", ParameterRole::kBeta, input_.channels, Initialiser::kZeros);
  }

  static void add(std::vector<ParameterTensor>& tensors, std::int64_t& size,
                  ParameterTensor tensor) {
    tensor.offset = size;
    size += tensor.size;
    tensors.push_back(std::move(tensor));
  }

  void kernel(std::vector<std::int64_t> shape, Initialiser initialiser, std::int64_t fan_in,
              std::int64_t fan_out) {
    const std::int64_t size = product(shape);
    add(result_.weights, result_.weights_size,
        {name("kernel"), layer_, ParameterRole::kKernel, std::move(shape), 0, size, initialiser,
         fan_in, fan_out});
  }

  void weight(const char* role_name, ParameterRole role, std::int64_t size,
              Initialiser initialiser) {
    add(result_.weights, result_.weights_size,
        {name(role_name), layer_, role, {size}, 0, size, initialiser, 0, 0});
  }

  void moving(const char* role_name, ParameterRole role, Initialiser initialiser) {
    add(result_.moving, result_.moving_size,
        {name(role_name), layer_, role, {input_.channels}, 0, input_.channels, initialiser, 0, 0});
  }

  const NetworkDescription& network_;
  const NetworkShapes& shapes_;
  ParameterLayout result_;
  int layer_ = 0;
  Shape input_;
};

}  // namespace

ParameterLayout layout_parameters(const NetworkDescription& network, const NetworkShapes& shapes) {
  CHECK(shapes.problems.empty(), "a network with problems has no parameters");
  return Layout(network, shapes).lay_out();
}

}  // namespace troupe::model
