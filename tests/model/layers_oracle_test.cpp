// Networks of the layers besides the 3DGANs' against PyTorch in float64
// (tests/oracle/layers_case.py).

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/model/example_networks.h"
#include "tests/model/program_runner.h"
#include "tests/model/random_network.h"
#include "tests/support/fixture_vector.h"

namespace troupe::model {
namespace {

Convolution strided(std::int64_t filters, Extent kernel, Extent stride) {
  Convolution made{filters, kernel, Padding::kSame};
  made.stride = stride;
  return made;
}
Layer act(const char* name, ActivationKind kind) { return layer(name, Activation{kind}); }

NetworkDescription branching_network() {
  Convolution dilated{8, {3, 3, 3}, Padding::kSame}, grouped{8, {3, 2, 3}, Padding::kSame};
  dilated.dilation = {2, 1, 2};
  grouped.groups = 4;
  Convolution last = strided(4, {2, 3, 2}, {1, 2, 1});
  last.padding = Padding::kValid;
  last.dilation = {2, 1, 1};
  last.bias = false;
  Convolution both = strided(4, {3, 2, 3}, {2, 1, 2});
  both.dilation = {1, 3, 2};
  both.groups = 2;
  TransposedConvolution padded{2, {3, 4, 2}, {2, 3, 1}};
  padded.pads = Margins{{1, 2, 0}, {0, 3, 1}};
  padded.output_padding = {1, 2, 0};
  padded.dilation = {1, 2, 3};
  padded.groups = 2;
  NetworkDescription network{"branching", Shape::image({12, 10, 9}, 2), {}, {}};
  network.layers = {
      layer("entry", convolution(4, {3, 3, 3}, Padding::kSame)),
      act("soft_entry", ActivationKind::kSoftplus),
      layer("down", strided(8, {4, 3, 5}, {2, 2, 2})),
      layer("group", GroupNorm{4}),
      act("coarse", ActivationKind::kSilu),
      layer("dilated", dilated),
      layer("instance", InstanceNorm{}),
      act("gelu", ActivationKind::kGelu),
      layer("grouped", grouped),
      act("elu", ActivationKind::kElu),
      layer("layer", LayerNorm{}),
      layer("looks", convolution(24, {1, 1, 1})),
      layer("attention", Attention{2}),
      layer("summed", Add{{"coarse", "layer"}}),
      layer("up", TransposedConvolution{4, {4, 3, 5}, {2, 2, 2}, Padding::kSame}),
      layer("cut", Slice{Axis::kZ, 1, 9}),
      layer("joined", Concatenate{{"soft_entry"}}),
      layer("mean", GlobalAveragePool{}, "soft_entry"),
      layer("gate", Dense{8}),
      act("open", ActivationKind::kSigmoid),
      layer("gated", Multiply{"open"}, "joined"),
      layer("smooth", AveragePool{{2, 3, 4}, Extent{1, 1, 1}, Padding::kSame}),
      layer("peaks", MaxPool{{3, 3, 2}, Extent{1, 1, 1}, Padding::kSame}),
      layer("pool", MaxPool{{3, 2, 2}, Extent{2, 2, 2}}),
      layer("sparse", AveragePool{{3, 2, 2}, Extent{1, 1, 3}, Padding::kSame}),
      layer("valid", TransposedConvolution{3, {3, 2, 4}, {1, 3, 2}}),
      layer("turned", Permute{{Axis::kY, Axis::kX, Axis::kZ, Axis::kChannels}}),
      layer("cropped", Crop{{{1, 0, 2}, {0, 2, 1}}}),
      layer("softened", Softmax{}),
      layer("around", Pad{{{0, 1, 0}, {2, 0, 1}}}),
      layer("last", last),
      layer("padded", padded),
      layer("wide", Pad{{{0, 2, 1}, {1, 0, 3}}}),
      layer("both", both),
  };
  return network;
}

// One axis, events with a label, and the greatest number of each channel: each of its cells is
// weighed by what the network finds in all of them.
NetworkDescription network_of_a_line() {
  const auto convolved = [](std::int64_t filters, std::int64_t kernel, std::int64_t stride,
                            std::int64_t dilation, std::int64_t groups) {
    Convolution made = strided(filters, {kernel, 1, 1}, {stride, 1, 1});
    made.dilation = {dilation, 1, 1};
    made.groups = groups;
    return made;
  };
  TransposedConvolution spread{4, {3, 1, 1}};
  spread.dilation = {2, 1, 1};
  spread.pads = Margins{{1, 0, 0}, {3, 0, 0}};
  NetworkDescription network{"line", Shape{{21, 1, 1}, 3, 1}, {}, {}, {"label"}};
  network.layers = {
      layer("entry", convolved(8, 5, 1, 1, 1)),
      act("bent", ActivationKind::kSilu),
      layer("down", convolved(6, 4, 2, 1, 1)),
      layer("kind", Embedding{kLabels, 6}, "conditions"),
      layer("told", Multiply{"kind"}, "down"),
      layer("dilated", convolved(6, 3, 1, 2, 1)),
      layer("norm", GroupNorm{3}),
      act("grown", ActivationKind::kGelu),
      layer("grouped", convolved(8, 3, 2, 1, 2)),
      layer("pool", MaxPool{{3, 1, 1}, Extent{1, 1, 1}, Padding::kSame}),
      layer("up", TransposedConvolution{4, {5, 1, 1}, {2, 1, 1}, Padding::kSame}),
      layer("spread", spread),
      layer("cut", Crop{{{1, 0, 0}, {0, 0, 0}}}),
      layer("joined", Concatenate{{"grown"}}),
      layer("peaks", GlobalMaxPool{}),
      layer("seen", Concatenate{{"kind"}}),
      layer("weights", Dense{5}),
      layer("last", Convolution{5, {3, 1, 1}}, "joined"),
      layer("weighed", Multiply{"weights"}),
  };
  return network;
}

void expect_as_pytorch(const NetworkDescription& network, std::int64_t batch) {
  const auto backend = make_reference_backend(DataType::kFloat64);
  ProgramRunner<double> runner(network, *backend, batch, 5);
  runner.forward();
  runner.backward(Pass::kBackwardParameters);
  runner.forward();
  runner.backward(Pass::kBackwardInput);
  const auto& tensors = runner.program().parameters().weights;
  std::ifstream file(std::string(TROUPE_SOURCE_DIR) + "/tests/oracle/layers.txt");
  ASSERT_TRUE(file) << "missing fixture; make it with tests/oracle/layers_case.py";
  std::uint32_t number = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string of, name;
    FixtureVector want;
    words >> of >> of >> name >> want;
    if (of != network.name) continue;
    std::vector<double> found = number == 0 ? runner.outputs[0] : runner.input_gradient;
    if (number >= 2) {
      const ParameterTensor& tensor = tensors.at(number - 2);
      ASSERT_EQ(tensor.name, name);
      const auto from = runner.gradients.begin() + tensor.offset;
      found.assign(from, from + tensor.size);
    }
    expect_vector(want, found, number, 1e-9 * want.norm + 1e-12, name);
    ++number;
  }
  EXPECT_EQ(number, 2 + tensors.size());
}

TEST(LayersOracle, BranchingNetworkAgreesWithPyTorch) { expect_as_pytorch(branching_network(), 2); }

TEST(LayersOracle, NetworkOfOneAxisAndOfLabelsAgreesWithPyTorch) {
  expect_as_pytorch(network_of_a_line(), 4);
}

}  // namespace
}  // namespace troupe::model
