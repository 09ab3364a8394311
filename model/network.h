#pragma once

// A network as data: a list of layers, each reading the one before it or one it names, and some of
// them further ones. Semantics are those of Keras: kernels are (x, y, z, in, out),
// nearest-neighbour upsampling, batch normalisation over the last axis.

#include <cstdint>
#include <iterator>
#include <optional>
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

enum class ActivationKind : std::uint8_t {
  kLinear,
  kRelu,
  kLeakyRelu,
  kSigmoid,
  kTanh,
  kSoftplus,  // log(1 + e^x)
  kGelu,      // in its form by tanh: x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
  kSilu,      // x sigmoid(x)
  kElu,       // x for x >= 0, else e^x - 1
};

// kSame makes ceil(cells / stride) cells and pads half of what that takes, rounded down, before and
// the rest after: floor((k - 1) / 2) before with stride 1.
enum class Padding : std::uint8_t { kValid, kSame };

// Axes of an image; features have channels alone.
enum class Axis : std::uint8_t { kX, kY, kZ, kChannels };

struct Dense {  // features or image (flattened) -> features; kernel (in, units)
  std::int64_t units = 0;
  bool bias = true;
  Initialiser initialiser = Initialiser::kGlorotUniform;
};
struct Convolution {
  std::int64_t filters = 0;
  Extent kernel{1, 1, 1};
  Padding padding = Padding::kValid;
  bool bias = true;
  Initialiser initialiser = Initialiser::kGlorotUniform;
  Extent stride{1, 1, 1};
  Extent dilation{1, 1, 1};  // cells from one tap to the next
  // The channels and the filters are cut into so many: filters see the channels of their own group.
  std::int64_t groups = 1;
};
// Cells at the two ends of each axis; as many behind as before, where only those are given.
struct Margins {
  Extent before{0, 0, 0}, behind = before;
  bool operator==(const Margins&) const = default;
};
// The transpose of a convolution with that stride, dilation and groups: each cell spreads over a
// window of the output, of w = (kernel - 1) x dilation + 1 cells per axis. An axis of n cells
// becomes n x stride (kSame), or n x stride + max(w - stride, 0). With `pads` or `output_padding`
// it becomes (n - 1) x stride + w - pads at both ends + output_padding, as PyTorch and ONNX have
// it. Kernel (x, y, z, filters / groups, in).
struct TransposedConvolution {
  std::int64_t filters = 0;
  Extent kernel{1, 1, 1};
  Extent stride{1, 1, 1};
  Padding padding = Padding::kValid;
  bool bias = true;
  Initialiser initialiser = Initialiser::kGlorotUniform;
  std::optional<Margins> pads = {};           // cells left away at the ends of each axis
  std::optional<Extent> output_padding = {};  // more cells behind, fewer than the stride
  Extent dilation{1, 1, 1};
  std::int64_t groups = 1;
};
inline Extent padded(Extent space, const Margins& amount) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    space[axis] += amount.before[axis] + amount.behind[axis];
  }
  return space;
}
struct Pad {  // zeros around an image
  Margins amount{};
};
struct Crop {  // takes cells around an image away
  Margins amount{};
};
struct Upsample {  // repeats each cell
  Extent factor{1, 1, 1};
};
// Windows of so many cells, as a convolution has them. kSame pads with nothing: the mean and the
// maximum are those of the cells that are inside the image. With kValid, cells that fill no window
// are left out.
struct AveragePool {
  Extent size{1, 1, 1};
  std::optional<Extent> stride = {};  // the size, where it is not given
  Padding padding = Padding::kValid;
};
struct MaxPool {
  Extent size{1, 1, 1};
  std::optional<Extent> stride = {};
  Padding padding = Padding::kValid;
};
struct GlobalAveragePool {};  // image -> one feature per channel
struct GlobalMaxPool {};
struct BatchNorm {  // moving = momentum x moving + (1 - momentum) x batch
  double momentum = 0.99;
  double epsilon = 1e-6;
  bool sync = false;  // the batch is that of all micro-batches (model/shared_statistics.h)
};
// Each sample by itself, in training as in inference: by the mean and variance of the channels of
// one cell, of the cells of one channel, or of the cells and channels of one group of neighbouring
// channels. gamma and beta per channel.
struct LayerNorm {
  double epsilon = 1e-3;
};
struct InstanceNorm {
  double epsilon = 1e-3;
};
struct GroupNorm {
  std::int64_t groups = 1;
  double epsilon = 1e-3;
};
struct Dropout {  // zero with probability rate, else x / (1 - rate); only in training
  double rate = 0.0;
};
struct Activation {
  ActivationKind kind = ActivationKind::kLinear;
  double slope = 0.3;  // of LeakyReLU for x < 0
};
struct Softmax {};  // over the channels of each cell
struct Power {      // x^exponent for x >= 0; negative x counts as 0
  double exponent = 1.0;
};
struct Reshape {
  Shape to;
};
struct Flatten {};
struct Permute {  // axis i of the output is axis order[i] of the input; all of them, each once
  std::vector<Axis> order;
};
struct Slice {  // `count` cells or channels from `begin` on
  Axis axis = Axis::kChannels;
  std::int64_t begin = 0, count = 1;
};
// Layers that read others too, which `with` names as Layer::input does. Add and Multiply take
// outputs of the same shape, or features with as many as an image has channels, for all its cells.
struct Add {
  std::vector<std::string> with;
};
struct Multiply {
  std::string with;
};
struct Concatenate {  // the layer's input first
  std::vector<std::string> with;
  Axis axis = Axis::kChannels;
};
// The number of a class, one feature, -> a row of its kernel (classes, units). Passes no gradient
// to what it reads. Any other number gives NaN.
struct Embedding {
  std::int64_t classes = 0, units = 0;
  Initialiser initialiser = Initialiser::kGlorotUniform;
};
// Each cell looks at all cells of its sample: channels are queries, keys and values, a third each,
// and each third is cut into `heads`. softmax(query . key / sqrt(channels of a head)) weighs
// values.
struct Attention {
  std::int64_t heads = 1;
};
struct Sum {};    // all elements of a sample -> 1 feature
struct Angle {};  // incidence angle in rad of a shower of one channel -> 1 feature; AngleForward
struct Bins {};   // counts of cells per energy bin -> 8 features; passes no gradient

using LayerKind =
    std::variant<Dense, Convolution, TransposedConvolution, Pad, Crop, Upsample, AveragePool,
                 MaxPool, GlobalAveragePool, GlobalMaxPool, BatchNorm, LayerNorm, InstanceNorm,
                 GroupNorm, Dropout, Activation, Softmax, Power, Reshape, Flatten, Permute, Slice,
                 Add, Multiply, Concatenate, Embedding, Attention, Sum, Angle, Bins>;

struct Layer {
  std::string name;  // unique in its network; parameters are called name/kernel, name/bias, ...
  LayerKind kind;
  // Name of the layer it reads, "input" for the network's input, or "conditions" and "columns" for
  // its conditions and columns; empty: the layer before, for the first one the network's input.
  std::string input;
};

// A number of an event that a network makes besides its other outputs, and the layer that makes it.
struct MadeColumn {
  std::string column, layer;
  bool operator==(const MadeColumn&) const = default;
};

struct NetworkDescription {
  std::string name;
  Shape input;
  std::vector<Layer> layers;
  std::vector<std::string> outputs;  // names of the layers that are results; empty: the last layer
  // Its second input: a feature for each of these, of which no gradient is taken. Empty: it has
  // none.
  std::vector<std::string> conditions = {};
  // Its third input: a feature for each of these, of which a gradient is taken as of the first.
  std::vector<std::string> columns = {};
  // Further outputs, behind the others, in this order. The image is then the last layer's.
  std::vector<MadeColumn> makes = {};
};

// What a layer reads, where that is no layer.
inline constexpr int kOfInput = -1, kOfConditions = -2, kOfColumns = -3;

// The inputs of a network besides the first, in this order: those that it has.
struct FurtherInput {
  int from = kOfConditions;   // or kOfColumns
  std::string name;           // as layers give it
  std::int64_t features = 0;  // of an event
};
std::vector<FurtherInput> further_inputs(const NetworkDescription& network);

// The word of a layer kind in topology files: "dense", "convolution", "pad", ...
std::string kind_name(const LayerKind& kind);

// The layers that a kind names besides the layer's input.
std::vector<std::string> other_inputs(const LayerKind& kind);

// A fault of a layer's description; `layer` is its index, -1 for the network as a whole.
struct NetworkProblem {
  int layer = -1;
  std::string message;
  std::string column = {};  // the one of NetworkDescription::makes that it is of; "": none
};

struct NetworkShapes {
  std::vector<Shape> layers;  // output shape per layer; meaningful when problems is empty
  std::vector<int> inputs;    // index of the layer each one reads, or what of the network it reads
  std::vector<std::vector<int>> others;  // likewise of those it reads besides
  std::vector<int> outputs;              // indices of the result layers
  std::vector<bool> used;                // per layer, whether an output depends on it
  std::vector<NetworkProblem> problems;
};
// The shape of what a layer reads: an element of NetworkShapes::inputs or others.
Shape shape_read(const NetworkDescription& network, const NetworkShapes& shapes, int from);
// Its name, as layers give it.
std::string name_read(const NetworkDescription& network, int from);

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
