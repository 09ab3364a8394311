#pragma once

// A network as data: a list of layers, each reading the one before it or one it names. Semantics
// are those of Keras: convolutions have stride 1, kernels are (x, y, z, in, out), nearest-neighbour
// upsampling, batch normalisation over the last axis.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "model/tensor.h"
#include "runtime/base/error.h"

namespace troupe::model {

// fan = product of the kernel's spatial extents x its channels (in or out).
enum class Initialiser : std::uint8_t {
  kGlorotUniform,  // uniform in +-sqrt(6 / (fan_in + fan_out))
  kGlorotNormal,   // normal truncated at 2 sigma, deviation sqrt(2 / (fan_in + fan_out)) after that
  kHeUniform,      // uniform in +-sqrt(6 / fan_in)
  kZeros,
  kOnes,
};

enum class ActivationKind : std::uint8_t { kLinear, kRelu, kLeakyRelu, kSigmoid, kTanh };

// kSame pads floor((k - 1) / 2) before and the rest after, as Keras does for even kernels.
enum class Padding : std::uint8_t { kValid, kSame };

struct Dense {  // features or image (flattened) -> features; kernel (in, units)
  std::int64_t units = 0;
  bool bias = true;
  Initialiser initialiser = Initialiser::kGlorotUniform;
};
struct Convolution {  // spatial rank 2 (kernel[2] == 1) or 3
  std::int64_t filters = 0;
  Extent kernel{1, 1, 1};
  Padding padding = Padding::kValid;
  bool bias = true;
  Initialiser initialiser = Initialiser::kGlorotUniform;
};
struct Pad {  // zeros, the same number on both sides of each axis
  Extent amount{0, 0, 0};
};
struct Upsample {  // repeats each cell
  Extent factor{1, 1, 1};
};
struct AveragePool {  // window = stride = size; cells that fill no window are left out
  Extent size{1, 1, 1};
};
struct BatchNorm {  // moving = momentum x moving + (1 - momentum) x batch
  double momentum = 0.99;
  double epsilon = 1e-6;
};
struct Dropout {  // zero with probability rate, else x / (1 - rate); only in training
  double rate = 0.0;
};
struct Activation {
  ActivationKind kind = ActivationKind::kLinear;
  double slope = 0.3;  // of LeakyReLU for x < 0
};
struct Power {  // x^exponent for x >= 0; negative x counts as 0
  double exponent = 1.0;
};
struct Reshape {
  Shape to;
};
struct Flatten {};
struct Sum {};    // all elements of a sample -> 1 feature
struct Angle {};  // incidence angle in rad of a shower of one channel -> 1 feature; AngleForward
struct Bins {};   // counts of cells per energy bin -> 8 features; passes no gradient

using LayerKind = std::variant<Dense, Convolution, Pad, Upsample, AveragePool, BatchNorm, Dropout,
                               Activation, Power, Reshape, Flatten, Sum, Angle, Bins>;

struct Layer {
  std::string name;  // unique in its network; parameters are called name/kernel, name/bias, ...
  LayerKind kind;
  // Name of the layer it reads, or "input" for the network's input; empty: the layer before, for
  // the first one the network's input.
  std::string input;
};

struct NetworkDescription {
  std::string name;
  Shape input;
  std::vector<Layer> layers;
  std::vector<std::string> outputs;  // names of the layers that are results; empty: the last layer
};

// The word of a layer kind in topology files: "dense", "convolution", "pad", ...
std::string kind_name(const LayerKind& kind);

// A fault of a layer's description; `layer` is its index, -1 for the network as a whole.
struct NetworkProblem {
  int layer = -1;
  std::string message;
};

struct NetworkShapes {
  std::vector<Shape> layers;  // output shape per layer; meaningful when problems is empty
  std::vector<int> inputs;    // index of the layer each one reads, -1 for the network's input
  std::vector<int> outputs;   // indices of the result layers
  std::vector<bool> used;     // per layer, whether an output depends on it
  std::vector<NetworkProblem> problems;
};

// Names resolved and shapes inferred; every problem at once (the shape of a layer behind a wrong
// one is skipped). Messages begin with "layer NAME (KIND): " where a layer is meant. A layer no
// output depends on is a problem too.
NetworkShapes infer_shapes(const NetworkDescription& network);

enum class ParameterRole : std::uint8_t {
  kKernel,
  kBias,
  kGamma,
  kBeta,
  kMovingMean,
  kMovingVariance
};

// One named range. Weights (trainable) and moving statistics live in two flat buffers per network.
struct ParameterTensor {
  std::string name;  // "conv1/kernel"; roles as Keras spells them: kernel bias gamma beta
                     // moving_mean moving_variance
  int layer = 0;
  ParameterRole role = ParameterRole::kKernel;
  std::vector<std::int64_t> shape;  // Keras order
  std::int64_t offset = 0;          // in elements, in the buffer its role lives in
  std::int64_t size = 0;
  Initialiser initialiser = Initialiser::kZeros;
  std::int64_t fan_in = 0;
  std::int64_t fan_out = 0;
};

struct ParameterLayout {
  std::vector<ParameterTensor> weights;  // layer order; kernel before bias, gamma before beta
  std::vector<ParameterTensor> moving;   // layer order; mean before variance
  std::int64_t weights_size = 0;
  std::int64_t moving_size = 0;
  std::int64_t size() const { return weights_size + moving_size; }
};

// `shapes` must be without problems.
ParameterLayout layout_parameters(const NetworkDescription& network, const NetworkShapes& shapes);

// Fills flat buffers of layout.weights_size and layout.moving_size elements: a pure function of the
// seed, the network's number (0 generator, 1 discriminator) and the layout.
//
// Element i of weight tensor t draws number i (runtime/base/random.h) at the position {seed,
// micro_batch 0, iteration 0, slot 0, stream initialiser_stream(network_number, t)}:
//   uniform   limit x (2 random_uniform - 1), limit = sqrt(6 / (fan_in + fan_out)) or sqrt(6 /
//   fan_in); normal    z x (sqrt(2 / (fan_in + fan_out)) / 0.87962566103423978), z = random_normal,
//   drawn again
//             at slot 1, 2, ... as long as |z| > 2. The divisor is the deviation of a standard
//             normal truncated at 2.
// All in double, in this order, rounded to float at the end. Biases, beta and moving means are 0,
// gamma and moving variances 1.
void initialise_parameters(const ParameterLayout& layout, std::uint64_t seed, int network_number,
                           float* weights, float* moving);

// Table of layers, output shapes and parameter counts, with totals.
std::string print_network(const NetworkDescription& network, const NetworkShapes& shapes);

}  // namespace troupe::model
