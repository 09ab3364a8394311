#pragma once

// Networks the tests of model/ share: the 3DGAN models of the reference implementations, written
// down layer by layer, and small ones that hold every kind of layer.

#include <string>
#include <utility>
#include <vector>

#include "model/network.h"

namespace troupe::model {

inline Layer layer(std::string name, LayerKind kind, std::string input = "") {
  return {std::move(name), std::move(kind), std::move(input)};
}

inline Convolution convolution(std::int64_t filters, Extent kernel,
                               Padding padding = Padding::kValid,
                               Initialiser initialiser = Initialiser::kGlorotUniform) {
  return {filters, kernel, padding, true, initialiser};
}

// pad, convolution with he_uniform, activation and, if wanted, batch norm.
inline void add_block(NetworkDescription& network, int number, Extent amount, Convolution conv,
                      ActivationKind kind, bool norm) {
  const std::string n = std::to_string(number);
  if (amount != Extent{0, 0, 0}) network.layers.push_back(layer("pad" + n, Pad{amount}));
  network.layers.push_back(layer("conv" + n, conv));
  network.layers.push_back(layer("activation" + n, Activation{kind, 0.3}));
  if (norm) network.layers.push_back(layer("norm" + n, BatchNorm{}));
}

inline NetworkDescription gan3d_51_generator() {
  const auto he = [](std::int64_t filters, Extent kernel) {
    return convolution(filters, kernel, Padding::kValid, Initialiser::kHeUniform);
  };
  const ActivationKind relu = ActivationKind::kRelu;
  NetworkDescription g{"generator", Shape::features(256), {}, {}};
  g.layers = {layer("dense", Dense{5184}), layer("reshape", Reshape{Shape::image({9, 9, 8}, 8)}),
              layer("upsample", Upsample{{6, 6, 6}})};
  add_block(g, 1, {0, 0, 0}, he(8, {6, 6, 8}), relu, true);
  add_block(g, 2, {2, 2, 1}, he(6, {4, 4, 6}), relu, true);
  add_block(g, 3, {2, 2, 1}, he(6, {4, 4, 6}), relu, true);
  add_block(g, 4, {2, 2, 1}, he(6, {4, 4, 6}), relu, true);
  add_block(g, 5, {1, 1, 0}, he(6, {3, 3, 5}), relu, true);
  add_block(g, 6, {1, 1, 0}, he(6, {3, 3, 3}), relu, false);
  add_block(g, 7, {0, 0, 0}, convolution(1, {2, 2, 2}, Padding::kValid, Initialiser::kGlorotNormal),
            relu, false);
  return g;
}

// Convolution, LeakyReLU, batch norm if wanted, dropout.
inline void add_discriminator_block(NetworkDescription& network, int number, Extent amount,
                                    Convolution conv, bool norm) {
  add_block(network, number, amount, conv, ActivationKind::kLeakyRelu, norm);
  network.layers.push_back(layer("dropout" + std::to_string(number), Dropout{0.2}));
}

inline NetworkDescription gan3d_51_discriminator() {
  NetworkDescription d{"discriminator", Shape::image({51, 51, 25}, 1), {}, {}};
  add_discriminator_block(d, 1, {0, 0, 0}, convolution(16, {5, 6, 6}, Padding::kSame), false);
  add_discriminator_block(d, 2, {0, 0, 1}, convolution(8, {5, 6, 6}), true);
  add_discriminator_block(d, 3, {0, 0, 1}, convolution(8, {5, 6, 6}), true);
  add_discriminator_block(d, 4, {0, 0, 0}, convolution(8, {5, 6, 6}), true);
  d.layers.push_back(layer("pool", AveragePool{{2, 2, 2}}));
  d.layers.push_back(layer("flat", Flatten{}));
  d.layers.push_back(layer("score", Dense{1}));
  d.layers.push_back(layer("generation", Activation{ActivationKind::kSigmoid}));
  d.layers.push_back(layer("auxiliary", Dense{1}, "flat"));
  d.layers.push_back(layer("image", Power{1.0 / 0.85}, "input"));
  d.layers.push_back(layer("angle", Angle{}, "image"));
  d.layers.push_back(layer("ecal", Sum{}, "image"));
  d.outputs = {"generation", "auxiliary", "angle", "ecal"};
  return d;
}

inline NetworkDescription gan3d_25_generator() {
  const ActivationKind leaky = ActivationKind::kLeakyRelu;
  const Initialiser he = Initialiser::kHeUniform;
  NetworkDescription g{"generator", Shape::features(200), {}, {}};
  g.layers = {layer("dense", Dense{3136}), layer("reshape", Reshape{Shape::image({7, 7, 8}, 8)})};
  add_block(g, 1, {0, 0, 0}, convolution(64, {6, 6, 8}, Padding::kSame, he), leaky, true);
  g.layers.push_back(layer("upsample1", Upsample{{2, 2, 2}}));
  add_block(g, 2, {2, 2, 0}, convolution(6, {6, 5, 8}, Padding::kValid, he), leaky, true);
  g.layers.push_back(layer("upsample2", Upsample{{2, 2, 3}}));
  add_block(g, 3, {1, 0, 3}, convolution(6, {3, 3, 8}, Padding::kValid, he), leaky, false);
  Convolution last{1, {2, 2, 2}, Padding::kValid, false, Initialiser::kGlorotNormal};
  add_block(g, 4, {0, 0, 0}, last, ActivationKind::kRelu, false);
  return g;
}

inline NetworkDescription gan3d_25_discriminator() {
  NetworkDescription d{"discriminator", Shape::image({25, 25, 25}, 1), {}, {}};
  add_discriminator_block(d, 1, {0, 0, 0}, convolution(32, {5, 5, 5}, Padding::kSame), false);
  add_discriminator_block(d, 2, {2, 2, 2}, convolution(8, {5, 5, 5}), true);
  add_discriminator_block(d, 3, {2, 2, 2}, convolution(8, {5, 5, 5}), true);
  add_discriminator_block(d, 4, {1, 1, 1}, convolution(8, {5, 5, 5}), true);
  d.layers.push_back(layer("pool", AveragePool{{2, 2, 2}}));
  d.layers.push_back(layer("flat", Flatten{}));
  d.layers.push_back(layer("score", Dense{1}));
  d.layers.push_back(layer("generation", Activation{ActivationKind::kSigmoid}));
  d.layers.push_back(layer("auxiliary", Dense{1}, "flat"));
  d.layers.push_back(layer("ecal", Sum{}, "input"));
  d.outputs = {"generation", "auxiliary", "ecal"};
  return d;
}

// Every kind of layer that passes a gradient, in the order a generator has them: features to image.
inline NetworkDescription small_generator() {
  NetworkDescription g{"small_generator", Shape::features(5), {}, {}};
  g.layers = {layer("dense", Dense{12}),
              layer("tanh", Activation{ActivationKind::kTanh}),
              layer("reshape", Reshape{Shape::image({2, 3, 1}, 2)}),
              layer("upsample", Upsample{{2, 1, 3}}),
              layer("pad1", Pad{{{1, 0, 2}}}),
              layer("conv1", convolution(3, {3, 2, 4})),
              layer("leaky", Activation{ActivationKind::kLeakyRelu, 0.3}),
              layer("norm", BatchNorm{}),
              layer("dropout", Dropout{0.25}),
              layer("pad2", Pad{{{1, 1, 0}}}),
              layer("conv2", convolution(2, {2, 2, 3}, Padding::kSame)),
              layer("linear", Activation{})};
  return g;
}

// Heads that fan out from one tensor and from the input; bins, which pass no gradient.
inline NetworkDescription small_discriminator() {
  NetworkDescription d{"small_discriminator", Shape::image({5, 4, 5}, 1), {}, {}};
  d.layers = {layer("conv1", convolution(3, {2, 3, 2}, Padding::kSame)),
              layer("leaky", Activation{ActivationKind::kLeakyRelu, 0.3}),
              layer("norm", BatchNorm{}),
              layer("dropout", Dropout{0.2}),
              layer("pool", AveragePool{{2, 2, 2}}),
              layer("flat", Flatten{}),
              layer("score", Dense{1}),
              layer("generation", Activation{ActivationKind::kSigmoid}),
              layer("auxiliary", Dense{1}, "flat"),
              layer("image", Power{1.0 / 0.85}, "input"),
              layer("angle", Angle{}, "image"),
              layer("ecal", Sum{}, "image"),
              layer("bins", Bins{}, "image")};
  d.outputs = {"generation", "auxiliary", "angle", "ecal", "bins"};
  return d;
}

inline NetworkDescription flat_images() {
  NetworkDescription network{"flat_images", Shape{{7, 6, 1}, 2, 2}, {}, {}};
  network.layers = {layer("pad", Pad{{{1, 2, 0}}}),
                    layer("conv", convolution(3, {3, 4, 1})),
                    layer("relu", Activation{ActivationKind::kRelu}),
                    layer("norm", BatchNorm{}),
                    layer("upsample", Upsample{{1, 2, 1}}),
                    layer("pool", AveragePool{{2, 3, 1}}),
                    layer("dense", Dense{2})};
  return network;
}

}  // namespace troupe::model
