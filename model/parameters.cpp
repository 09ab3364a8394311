#include "model/network.h"

namespace troupe::model {
namespace {

class Layout {
 public:
  Layout(const NetworkDescription& network, const NetworkShapes& shapes)
      : network_(network), shapes_(shapes) {}

  ParameterLayout lay_out() {
    for (layer_ = 0; layer_ < static_cast<int>(network_.layers.size()); ++layer_) {
      const int input = shapes_.inputs[static_cast<std::size_t>(layer_)];
      input_ = input < 0 ? network_.input : shapes_.layers[static_cast<std::size_t>(input)];
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
    std::vector<std::int64_t> shape(convolution.kernel.begin(),
                                    convolution.kernel.begin() + input_.spatial_rank);
    std::int64_t taps = 1;
    for (const std::int64_t extent : shape) taps *= extent;
    shape.push_back(input_.channels);
    shape.push_back(filters);
    kernel(std::move(shape), convolution.initialiser, taps * input_.channels, taps * filters);
    if (convolution.bias) weight("bias", ParameterRole::kBias, filters, Initialiser::kZeros);
  }

  void operator()(const BatchNorm&) {
    const std::int64_t channels = input_.channels;
    weight("gamma", ParameterRole::kGamma, channels, Initialiser::kOnes);
    weight("beta", ParameterRole::kBeta, channels, Initialiser::kZeros);
    moving("moving_mean", ParameterRole::kMovingMean, Initialiser::kZeros);
    moving("moving_variance", ParameterRole::kMovingVariance, Initialiser::kOnes);
  }

  template <class Other>
  void operator()(const Other&) {}

 private:
  std::string name(const char* role) const {
    return network_.layers[static_cast<std::size_t>(layer_)].name + "/" + role;
  }

  static void add(std::vector<ParameterTensor>& tensors, std::int64_t& size,
                  ParameterTensor tensor) {
    tensor.offset = size;
    size += tensor.size;
    tensors.push_back(std::move(tensor));
  }

  void kernel(std::vector<std::int64_t> shape, Initialiser initialiser, std::int64_t fan_in,
              std::int64_t fan_out) {
    std::int64_t size = 1;
    for (const std::int64_t extent : shape) size *= extent;
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
