#pragma once

// A network after rewriting: which computations one way of running it needs and which values they
// pass on. The rewrites keep the results:
//
//   pad before a convolution that alone reads it     becomes padding of the convolution
//   upsampling that such a convolution alone reads   becomes upsampling of the convolution
//   ReLU or LeakyReLU that alone reads a convolution becomes part of the convolution
//   reshape, flatten, linear activation,
//   pad and crop by 0,
//   dropout in inference or with rate 0              compute nothing: same value, other name
//
// A convolution that is computed cell by cell, in groups or with both stride and dilation, stays as
// it is, and one with either of these is not upsampled.
//
// Every output has a value of its own, never an input of the network and never another output's
// value, so that both ways of running a network can keep it in the same place; where a layer that
// computes nothing would break this, a copy is made.

#include <vector>

#include "model/network.h"
#include "model/operation.h"

namespace troupe::model {

enum class Mode : std::uint8_t { kTraining, kInference };

struct Value {
  int layer = kOfInput;       // whose result it is; also of the network's other inputs
  std::int64_t elements = 0;  // of the whole micro-batch
  int output = -1;            // index into the network's outputs
};

struct Computation {
  int layer = 0;            // of the network; with a fused activation the convolution's
  LayerKind kind;           // an Activation of kind kLinear stands for a copy
  int input = 0;            // index of the value it reads
  std::vector<int> others;  // those it reads besides
  int output = 0;           // index of the value it makes
  Shape input_shape;        // of one sample
  std::vector<Shape> other_shapes;
  Shape output_shape;
  Activation fused;   // convolution: activation that belongs to it, kLinear for none
  Margins extra_pad;  // convolution: zeros before and behind each axis from absorbed pads
  Extent upsample{1, 1,
                  1};  // convolution: repeats of each cell of its input, from an absorbed layer
};

struct Graph {
  std::vector<Value> values;  // 0 is the network's input, those behind it its further_inputs()
  std::vector<Computation> computations;  // in an order that makes values before they are read
  std::vector<int> outputs;               // the value of each output of the network
};

// `shapes` must be without problems.
Graph make_graph(const NetworkDescription& network, const NetworkShapes& shapes, std::int64_t batch,
                 Mode mode);

}  // namespace troupe::model
