#include "model/instructions.h"

#include "model/instruction_writer.h"

namespace troupe::model {
namespace {

std::vector<ParameterTensor>::const_iterator find_role(const std::vector<ParameterTensor>& tensors,
                                                       int layer, ParameterRole role) {
  auto found = tensors.begin();
  while (found != tensors.end() && (found->layer != layer || found->role != role)) ++found;
  return found;
}

Operand find_operand(const std::vector<ParameterTensor>& tensors, int layer, ParameterRole role,
                     Location location, Access access) {
  const auto found = find_role(tensors, layer, role);
  // A layer may lack the parameter, as one without bias does, and then has no operand for it.
  if (found == tensors.end()) return {};
  return {location, access, -1, found->offset};
}

std::size_t number(Pass pass) { return static_cast<std::size_t>(pass); }

}  // namespace

int InstructionWriter::new_tensor(std::string name, std::int64_t elements) {
  lists_.tensors.push_back({std::move(name), elements});
  return static_cast<int>(lists_.tensors.size()) - 1;
}

const std::string& InstructionWriter::layer_name(int layer) const {
  return input_.network.layers[static_cast<std::size_t>(layer)].name;
}

std::int64_t InstructionWriter::tensor_elements(int tensor) const {
  return lists_.tensors[static_cast<std::size_t>(tensor)].elements;
}

void InstructionWriter::add(int layer, Operation operation, std::vector<Operand> operands) {
  CHECK(operands.size() <= kMostOperands, "raise kMostOperands");
  lists_.passes[number(pass_)].push_back({std::move(operation), layer, std::move(operands)});
}

void InstructionWriter::add_of_round(Operation operation, std::vector<Operand> operands) {
  add(std::move(operation), std::move(operands));
  lists_.passes[number(pass_)].back().of_round = true;
}

void InstructionWriter::copy(int layer, int from, int to) {
  add(layer, ActivationForward{tensor_elements(from), Activation{}}, {read(from), write(to)});
}

Operand InstructionWriter::weight(ParameterRole role) const {
  return find_operand(input_.layout.weights, layer(), role, Location::kWeights, Access::kRead);
}
Operand InstructionWriter::gradient(ParameterRole role) const {
  return find_operand(input_.layout.weights, layer(), role, Location::kGradients, Access::kWrite);
}
Operand InstructionWriter::moving(ParameterRole role) const {
  return find_operand(input_.layout.moving, layer(), role, Location::kMoving, Access::kRead);
}
Operand InstructionWriter::statistic(ParameterRole role) const {
  return find_operand(input_.layout.moving, layer(), role, Location::kStatistics, Access::kWrite);
}

Operand InstructionWriter::shared(SharedArray array, ParameterRole role) const {
  Operand operand =
      find_operand(input_.layout.moving, layer(), role, Location::kShared, Access::kRead);
  operand.offset += static_cast<std::int64_t>(array) * input_.layout.moving_size;
  return operand;
}
Operand InstructionWriter::share(ShareArray array, ParameterRole role) const {
  Operand operand =
      find_operand(input_.layout.moving, layer(), role, Location::kShares, Access::kWrite);
  operand.offset += static_cast<std::int64_t>(array) * input_.layout.moving_size;
  return operand;
}

Operand split(InstructionWriter& writer, const std::optional<Phases>& phases, Operand operand,
              const char* name) {
  if (!phases) return operand;
  const int apart =
      writer.new_tensor(writer.layer_name(writer.layer()) + " " + name, phase_elements(*phases));
  writer.add(SplitPhases{*phases}, {operand, InstructionWriter::write(apart)});
  return InstructionWriter::read(apart);
}

// The tensors that callers read and write come first: the inputs, the outputs, and their gradients.
// All passes share them. Training has a graph of its own, and both backward passes read what its
// forward pass has kept.
InstructionLists make_instructions(const NetworkDescription& network, const NetworkShapes& shapes,
                                   const ParameterLayout& layout, const ProgramOptions& options) {
  InstructionLists lists;
  const CompilerInput input{network, layout, options};
  const auto add_tensor = [&](const std::string& name, std::int64_t elements) {
    lists.tensors.push_back({name, elements});
    return static_cast<int>(lists.tensors.size()) - 1;
  };
  const std::int64_t input_elements = options.batch * network.input.elements();
  lists.input = add_tensor("input", input_elements);
  lists.input_gradient = add_tensor("input gradient", input_elements);
  for (const FurtherInput& further : further_inputs(network)) {
    const std::int64_t elements = options.batch * further.features;
    const int tensor = add_tensor(further.name, elements);
    (further.from == kOfConditions ? lists.conditions : lists.columns) = tensor;
    if (further.from == kOfConditions) continue;
    lists.columns_gradient = add_tensor(further.name + " gradient", elements);
  }
  for (const int layer : shapes.outputs) {
    const std::string& name = network.layers[static_cast<std::size_t>(layer)].name;
    const std::int64_t elements =
        options.batch * shapes.layers[static_cast<std::size_t>(layer)].elements();
    lists.outputs.push_back(add_tensor(name, elements));
    lists.output_gradients.push_back(add_tensor(name + " output gradient", elements));
  }

  const auto writer = [&](Pass pass) {
    lists.compiled[number(pass)] = true;
    return InstructionWriter(input, pass, lists);
  };
  const Graph inference = make_graph(network, shapes, options.batch, Mode::kInference);
  write_forward(inference, writer(Pass::kForwardInference));
  if (!options.forward_training) return lists;
  const Graph training = make_graph(network, shapes, options.batch, Mode::kTraining);
  const ForwardTensors kept = write_forward(training, writer(Pass::kForwardTraining));
  if (options.backward_parameters) {
    write_backward(training, kept, writer(Pass::kBackwardParameters));
  }
  if (options.backward_input) write_backward(training, kept, writer(Pass::kBackwardInput));
  return lists;
}

}  // namespace troupe::model
