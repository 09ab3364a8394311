#pragma once

// The inside of a Program, shared by compile.cpp, which fills it, and program.cpp, which runs it.

#include <array>
#include <memory>
#include <vector>

#include "model/instructions.h"
#include "model/memory_plan.h"
#include "model/program.h"

namespace troupe::model {

struct Program::Place {
  Location location = Location::kNull;
  std::size_t bytes = 0;    // from the location's first byte
  std::int64_t stride = 0;  // elements to the operand of a group's next micro-batch, in the arena
};

// A kernel with its operands' places.
struct Program::Call {
  std::unique_ptr<const Kernel> kernel;
  std::array<Place, kMostOperands> operands{};
  std::size_t operand_count = 0;
  std::size_t end = 0;  // of the pass's instructions that have been computed after it
  int round = -1;       // the layer in whose round alone it is computed; -1: in all runs
  // For kBackwardParameters: gradients from here to the end are final after the call.
  std::int64_t gradients_final_from = 0;
};

struct Program::Content {
  NetworkDescription network;
  NetworkShapes shapes;
  ParameterLayout parameters;
  std::int64_t batch = 0;
  DataType data_type = DataType::kFloat32;
  Memory* memory = nullptr;
  std::int64_t group = 1;
  InstructionLists lists;
  std::vector<TensorLife> lives;
  MemoryPlan plan;
  std::array<std::vector<Call>, kPasses> calls;                         // of lists.passes
  std::array<std::array<bool, kLocations>, kPasses> reads_or_writes{};  // which locations are used
  std::size_t scratch_bytes = 0;
};

}  // namespace troupe::model
