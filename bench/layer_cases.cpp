#include "bench/layer_cases.h"

#include "config/network_fields.h"

namespace troupe::bench {
namespace {

std::string one(const std::string& input, const std::string& layer) {
  return "{input: [" + input + "], layers: [" + layer + "]}";
}

LayerCase convolution(const std::string& name, std::int64_t events, const std::string& input,
                      const std::string& options) {
  return {name, events, one(input, "{convolution: {padding: same, " + options + "}}")};
}

LayerCase transposed(const std::string& name, std::int64_t events, const std::string& input,
                     const std::string& options) {
  return {name, events, one(input, "{transposed_convolution: {" + options + "}}")};
}

// Its size is that of images in the middle of calo_unet_12.
LayerCase activation(const std::string& kind) {
  return {kind, 16, one("12, 12, 12, 16", "{activation: " + kind + "}")};
}

void add_convolutions(std::vector<LayerCase>& cases) {
  const auto add = [&](LayerCase layer) { cases.push_back(std::move(layer)); };
  add(convolution("3-D 16-16", 16, "12, 12, 12, 16", "filters: 16, kernel: [3, 3, 3]"));
  add(convolution("3-D 32-32", 16, "6, 6, 6, 32", "filters: 32, kernel: [3, 3, 3]"));
  add(convolution("3-D 48-48", 16, "3, 3, 3, 48", "filters: 48, kernel: [3, 3, 3]"));
  add(convolution("3-D 8-8", 8, "25, 25, 25, 8", "filters: 8, kernel: [3, 3, 3]"));
  add(convolution("3-D stride 16-32", 16, "12, 12, 12, 16",
                  "filters: 32, kernel: [3, 3, 3], stride: [2, 2, 2]"));
  add(convolution("3-D stride 8-16", 8, "25, 25, 25, 8",
                  "filters: 16, kernel: [3, 3, 3], stride: [2, 2, 2]"));
  add(convolution("3-D dilated 16-16", 16, "12, 12, 12, 16",
                  "filters: 16, kernel: [3, 3, 3], dilation: [2, 2, 2]"));
  add(convolution("3-D stride, dilated 16-32", 16, "12, 12, 12, 16",
                  "filters: 32, kernel: [3, 3, 3], stride: [2, 2, 2], dilation: [2, 1, 3]"));
  add(transposed("3-D transposed 32-16", 16, "6, 6, 6, 32",
                 "filters: 16, kernel: [2, 2, 2], stride: [2, 2, 2]"));
  add(transposed("3-D transposed 16-8", 8, "13, 13, 13, 16",
                 "filters: 8, kernel: [3, 3, 3], stride: [2, 2, 2]"));
  add(transposed("3-D padded transposed 16-8", 8, "13, 13, 13, 16",
                 "filters: 8, kernel: [3, 3, 3], stride: [2, 2, 2], pads: [1, 1, 1], "
                 "output_padding: [1, 1, 1]"));
  add(transposed("3-D dilated transposed 16-16", 16, "12, 12, 12, 16",
                 "filters: 16, kernel: [3, 3, 3], dilation: [2, 2, 2], pads: [[2, 1], 2, 2]"));
  add(transposed("3-D transposed groups 32-16", 16, "6, 6, 6, 32",
                 "filters: 16, kernel: [2, 2, 2], stride: [2, 2, 2], groups: 4"));
  add(convolution("3-D groups 16-16", 16, "12, 12, 12, 16",
                  "filters: 16, kernel: [3, 3, 3], groups: 4"));
  add(convolution("3-D depthwise 16", 16, "12, 12, 12, 16",
                  "filters: 16, kernel: [3, 3, 3], groups: 16"));
  add(convolution("2-D 1-16", 32, "28, 28, 1", "filters: 16, kernel: [5, 5]"));
  add(convolution("2-D 16-32", 32, "14, 14, 16", "filters: 32, kernel: [5, 5]"));
  add(convolution("2-D stride 1-64", 32, "28, 28, 1",
                  "filters: 64, kernel: [5, 5], stride: [2, 2]"));
  add(convolution("2-D stride 64-128", 32, "14, 14, 64",
                  "filters: 128, kernel: [5, 5], stride: [2, 2]"));
  add(transposed("2-D transposed 256-128", 16, "7, 7, 256",
                 "filters: 128, kernel: [5, 5], padding: same"));
  add(transposed("2-D transposed 128-64", 16, "7, 7, 128",
                 "filters: 64, kernel: [5, 5], stride: [2, 2], padding: same"));
  add(transposed("2-D transposed 64-1", 16, "14, 14, 64",
                 "filters: 1, kernel: [5, 5], stride: [2, 2], padding: same"));
  add(convolution("2-D dilated 16-16", 32, "28, 28, 16",
                  "filters: 16, kernel: [3, 3], dilation: [2, 2]"));
  add(convolution("2-D stride, dilated 16-32", 32, "28, 28, 16",
                  "filters: 32, kernel: [3, 3], stride: [2, 2], dilation: [2, 2]"));
  add(convolution("2-D groups 32-32", 32, "14, 14, 32", "filters: 32, kernel: [3, 3], groups: 4"));
  add(convolution("2-D depthwise 32", 32, "14, 14, 32", "filters: 32, kernel: [3, 3], groups: 32"));
  add(convolution("1-D 16-32", 32, "256, 16", "filters: 32, kernel: [5]"));
  add(convolution("1-D stride 16-32", 32, "256, 16", "filters: 32, kernel: [5], stride: [2]"));
  add(convolution("1-D dilated 16-16", 32, "256, 16", "filters: 16, kernel: [3], dilation: [4]"));
  add(convolution("1-D stride, dilated 16-32", 32, "256, 16",
                  "filters: 32, kernel: [5], stride: [2], dilation: [3]"));
  add(convolution("1-D stride, dilated groups 32-32", 32, "256, 32",
                  "filters: 32, kernel: [5], stride: [3], dilation: [2], groups: 4"));
  add(transposed("1-D transposed 32-16", 32, "128, 32",
                 "filters: 16, kernel: [4], stride: [2], padding: same"));
  add(convolution("1-D groups 32-32", 32, "256, 32", "filters: 32, kernel: [5], groups: 4"));
  add(convolution("1-D depthwise 32", 32, "256, 32", "filters: 32, kernel: [5], groups: 32"));
}

void add_others(std::vector<LayerCase>& cases) {
  const auto add = [&](const std::string& name, std::int64_t events, const std::string& input,
                       const std::string& layer) {
    cases.push_back({name, events, one(input, layer)});
  };
  add("3-D average pool", 16, "12, 12, 12, 8", "{average_pool: [2, 2, 2]}");
  add("3-D max pool", 16, "12, 12, 12, 16", "{max_pool: [2, 2, 2]}");
  add("2-D max pool", 32, "28, 28, 16", "{max_pool: [2, 2]}");
  add("2-D wide max pool", 32, "28, 28, 16",
      "{max_pool: {size: [3, 3], stride: [2, 2], padding: same}}");
  add("2-D wide average pool", 32, "28, 28, 16",
      "{average_pool: {size: [3, 4], stride: [1, 1], padding: same}}");
  add("1-D max pool", 32, "256, 16", "{max_pool: [2]}");
  add("global average pool", 16, "12, 12, 12, 32", "global_average_pool");
  add("global max pool", 16, "12, 12, 12, 32", "global_max_pool");
  add("batch norm 16", 16, "12, 12, 12, 16", "{batch_norm: {epsilon: 1e-3}}");
  add("batch norm 12544", 32, "12544", "{batch_norm: {epsilon: 1e-3}}");
  add("layer norm 16", 16, "12, 12, 12, 16", "layer_norm");
  add("instance norm 16", 16, "12, 12, 12, 16", "instance_norm");
  add("group norm 4 of 16", 16, "12, 12, 12, 16", "{group_norm: 4}");
  add("group norm 8 of 48", 16, "3, 3, 3, 48", "{group_norm: 8}");
  add("group norm 2 of 8", 8, "25, 25, 25, 8", "{group_norm: 2}");
  add("attention of 27 cells", 16, "3, 3, 3, 144", "{attention: 4}");
  add("attention of 216 cells", 16, "6, 6, 6, 96", "{attention: 4}");
  add("embedding", 64, "1", "{embedding: {classes: 10, units: 100}}");
  for (const char* kind :
       {"relu", "leaky_relu", "sigmoid", "tanh", "softplus", "gelu", "silu", "elu"}) {
    cases.push_back(activation(kind));
  }
  add("softmax of 16", 16, "12, 12, 12, 16", "softmax");
  add("pad", 16, "12, 12, 12, 16", "{pad: [1, 1, 1]}");
  add("crop", 16, "12, 12, 12, 16", "{crop: [1, 1, 1]}");
  add("pad uneven", 16, "12, 12, 12, 16", "{pad: [1, [0, 2], [3, 1]]}");
  add("crop uneven", 16, "12, 12, 12, 16", "{crop: [1, [0, 2], [3, 1]]}");
  add("upsample", 16, "6, 6, 6, 16", "{upsample: [2, 2, 2]}");
  add("permute", 16, "12, 12, 12, 16", "{permute: [z, y, x, channels]}");
  add("slice", 16, "12, 12, 12, 16", "{slice: {axis: channels, begin: 4, count: 8}}");
  add("add", 16, "12, 12, 12, 16", "{add: [input]}");
  add("multiply", 16, "12, 12, 12, 16", "{multiply: input}");
  add("concatenate", 16, "12, 12, 12, 16", "{concatenate: [input]}");
  add("dense 3456", 16, "32", "{dense: 3456}");
}

}  // namespace

const std::vector<LayerCase>& layer_cases() {
  static const std::vector<LayerCase> kCases = [] {
    std::vector<LayerCase> cases;
    add_convolutions(cases);
    add_others(cases);
    return cases;
  }();
  return kCases;
}

model::NetworkDescription network_of(const LayerCase& layer) {
  config::Problems problems;
  config::Origins origins;
  config::Reader reader(problems, origins, ".");
  const config::YamlValue written = config::parse_yaml(layer.network, layer.name, problems);
  model::NetworkDescription network;
  network.name = "layer";
  config::shape()->read(*written.find("input"), network.input, reader);
  config::layers()->read(*written.find("layers"), network.layers, reader);
  CHECK(problems.empty(), layer.name + ": " + problems.error().message);
  return network;
}

}  // namespace troupe::bench
