#pragma once

// Builds the lists of instructions.h: the forward passes, and the backward passes from the tensors
// that the forward pass in training keeps. For the compiler alone.

#include <optional>
#include <utility>

#include "model/convolution_plan.h"
#include "model/graph.h"
#include "model/instructions.h"
#include "model/shared_norm.h"

namespace troupe::model {

struct CompilerInput {
  const NetworkDescription& network;
  const ParameterLayout& layout;
  const ProgramOptions& options;
};

// Appends tensors and instructions to the lists, and finds operands. The last group of methods is
// about the computation that `go_to` named.
class InstructionWriter {
 public:
  InstructionWriter(const CompilerInput& input, Pass pass, InstructionLists& lists)
      : input_(input), pass_(pass), lists_(lists) {}

  std::int64_t batch() const { return input_.options.batch; }
  Pass pass() const { return pass_; }
  const CompilerInput& input() const { return input_; }
  InstructionLists& lists() { return lists_; }

  int new_tensor(std::string name, std::int64_t elements);
  const std::string& layer_name(int layer) const;
  std::int64_t tensor_elements(int tensor) const;
  void add(int layer, Operation operation, std::vector<Operand> operands);
  void copy(int layer, int from, int to);

  static Operand read(int tensor) { return {Location::kArena, Access::kRead, tensor, 0}; }
  static Operand write(int tensor) { return {Location::kArena, Access::kWrite, tensor, 0}; }
  static Operand update(int tensor) { return {Location::kArena, Access::kUpdate, tensor, 0}; }

  // Stays valid until the next call.
  void go_to(const Computation& computation) { computation_ = &computation; }
  const Computation& computation() const { return *computation_; }
  int layer() const { return computation_->layer; }
  const Shape& in() const { return computation_->input_shape; }
  const Shape& out() const { return computation_->output_shape; }
  std::int64_t elements() const { return batch() * in().elements(); }
  std::int64_t rows() const { return batch() * in().cells(); }
  void add(Operation operation, std::vector<Operand> operands) {
    add(layer(), std::move(operation), std::move(operands));
  }
  // The same in the layer's round alone (model/shared_statistics.h).
  void add_of_round(Operation operation, std::vector<Operand> operands);
  // The layer's parameter of this role in one of the flat buffers; null where the layer has none.
  Operand weight(ParameterRole role) const;
  Operand gradient(ParameterRole role) const;
  Operand moving(ParameterRole role) const;
  Operand statistic(ParameterRole role) const;
  Operand shared(SharedArray array, ParameterRole role) const;
  Operand share(ShareArray array, ParameterRole role) const;

 private:
  const CompilerInput& input_;
  const Pass pass_;
  InstructionLists& lists_;
  const Computation* computation_ = nullptr;
};

// An operand taken apart into phases, in a tensor of its own; without phases itself.
Operand split(InstructionWriter& writer, const std::optional<Phases>& phases, Operand operand,
              const char* name);
// Calls write(operand) for an operand that comes to be `target` when its phases are joined.
template <class Write>
void join(InstructionWriter& writer, const std::optional<Phases>& phases, Operand target,
          const char* name, Write write) {
  if (!phases) return write(target);
  const int apart =
      writer.new_tensor(writer.layer_name(writer.layer()) + " " + name, phase_elements(*phases));
  write(InstructionWriter::write(apart));
  writer.add(JoinPhases{*phases}, {InstructionWriter::read(apart), target});
}

// Arena tensors of one forward pass, by index into the Graph's values and computations.
struct ForwardTensors {
  std::vector<int> values;
  std::vector<int> means;               // batch norm in training and group norm, else -1
  std::vector<int> inverse_deviations;  // likewise
};

// The windows of a pool; those of a global one are the image.
PoolGeometry pool_geometry(const Computation& computation, std::int64_t batch);
// Sizes of the norms of single samples.
GroupNormForward group_norm(const Computation& computation, std::int64_t batch);
// The part of the output of a Concatenate that comes from its input (-1) or one of `others`.
CopyParts concatenated_part(const Computation& computation, std::int64_t batch, int other);
CopyParts sliced_part(const Computation& computation, std::int64_t batch);
PermuteAxes permuted(const Computation& computation, std::int64_t batch);

ForwardTensors write_forward(const Graph& graph, InstructionWriter writer);
// `forward` is that of the pass in training for the same graph.
void write_backward(const Graph& graph, const ForwardTensors& forward, InstructionWriter writer);

}  // namespace troupe::model
