#pragma once

// A Program as data: for each pass a flat list of operations on numbered tensors, before kernels
// are made and memory is planned. A pass computes only what its results need.

#include <array>
#include <string>
#include <vector>

#include "model/network.h"
#include "model/operation.h"
#include "model/program.h"

namespace troupe::model {

// The memory that holds an operand: the workspace's arena or one of the Bindings' flat buffers.
// kNull is the null pointer an Operation allows for an operand it can do without.
enum class Location : std::uint8_t {
  kNull,
  kArena,
  kWeights,
  kMoving,
  kGradients,
  kStatistics,
  kShared,
  kShares,
};
inline constexpr int kLocations = 8;

enum class Access : std::uint8_t { kRead, kWrite, kUpdate };

struct Operand {
  Location location = Location::kNull;
  Access access = Access::kRead;
  int tensor = -1;          // kArena: index into InstructionLists::tensors
  std::int64_t offset = 0;  // flat buffers: in elements
};

struct Instruction {
  Operation operation;
  int layer = -1;  // of the network, -1 for the network as a whole
  std::vector<Operand> operands;
  bool of_round = false;  // computed only where Bindings::round is the layer
};

struct ArenaTensor {
  std::string name;           // "conv1", "conv1 gradient": for people
  std::int64_t elements = 0;  // of the whole micro-batch
};

using Passes = std::array<std::vector<Instruction>, kPasses>;

struct InstructionLists {
  std::vector<ArenaTensor> tensors;
  Passes passes;
  std::array<bool, kPasses> compiled{};  // a compiled pass may have no instructions
  // Tensors the caller of a Program reads and writes.
  int input = -1;
  // -1 where the network has none.
  int conditions = -1;
  int columns = -1;
  std::vector<int> outputs;
  std::vector<int> output_gradients;
  int input_gradient = -1;
  int columns_gradient = -1;

  // The tensor of kOfInput, kOfConditions or kOfColumns, and of its gradient; -1: there is none.
  int input_of(int from) const {
    return from == kOfInput ? input : from == kOfConditions ? conditions : columns;
  }
  int gradient_of(int from) const {
    return from == kOfInput ? input_gradient : from == kOfColumns ? columns_gradient : -1;
  }
};

// `shapes` must be without problems and `layout` belong to it. Inference is always compiled, the
// backward passes only together with the forward pass in training.
InstructionLists make_instructions(const NetworkDescription& network, const NetworkShapes& shapes,
                                   const ParameterLayout& layout, const ProgramOptions& options);

// Lets the result of an elementwise operation stand where the operand before it stands, if nothing
// else reads that. The tensor of the operand is then unused.
void share_places(InstructionLists& lists);

}  // namespace troupe::model
