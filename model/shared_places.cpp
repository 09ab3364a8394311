#include "model/instructions.h"

namespace troupe::model {
namespace {

// How often the instructions of all passes read and write a tensor.
struct Uses {
  int reads = 0, writes = 0;
  bool is_of_caller = false;  // who reads or writes it outside the passes
};

std::vector<Uses> count_uses(const InstructionLists& lists) {
  std::vector<Uses> uses(lists.tensors.size());
  const auto of = [&](int tensor) -> Uses& { return uses[static_cast<std::size_t>(tensor)]; };
  for (const auto& pass : lists.passes) {
    for (const Instruction& instruction : pass) {
      for (const Operand& operand : instruction.operands) {
        if (operand.location != Location::kArena) continue;
        if (operand.access != Access::kWrite) ++of(operand.tensor).reads;
        // A round's results, but for its shares, are written again behind it.
        const bool writes = operand.access != Access::kRead && !instruction.of_round;
        if (writes) ++of(operand.tensor).writes;
      }
    }
  }
  for (const int tensor : lists.outputs) of(tensor).is_of_caller = true;
  for (const int tensor : lists.output_gradients) of(tensor).is_of_caller = true;
  for (const int tensor : {lists.input, lists.conditions, lists.columns, lists.input_gradient,
                           lists.columns_gradient}) {
    if (tensor >= 0) of(tensor).is_of_caller = true;
  }
  return uses;
}

}  // namespace

void share_places(InstructionLists& lists) {
  const std::vector<Uses> uses = count_uses(lists);
  std::vector<int> place(lists.tensors.size());  // the tensor that stands for each
  for (std::size_t i = 0; i < place.size(); ++i) place[i] = static_cast<int>(i);
  for (const auto& pass : lists.passes) {
    for (const Instruction& instruction : pass) {
      if (!is_elementwise(instruction.operation)) continue;
      const Operand& result = instruction.operands.back();
      const Operand& before = instruction.operands[instruction.operands.size() - 2];
      if (result.location != Location::kArena || before.location != Location::kArena) continue;
      const Uses& of_before = uses[static_cast<std::size_t>(before.tensor)];
      const bool ends_here = of_before.reads == 1 && of_before.writes == 1;
      const bool begins_here = uses[static_cast<std::size_t>(result.tensor)].writes == 1;
      if (ends_here && begins_here && !of_before.is_of_caller) {
        place[static_cast<std::size_t>(before.tensor)] = result.tensor;
      }
    }
  }
  const auto place_of = [&](int tensor) {
    while (place[static_cast<std::size_t>(tensor)] != tensor)
      tensor = place[static_cast<std::size_t>(tensor)];
    return tensor;
  };
  for (auto& pass : lists.passes) {
    for (Instruction& instruction : pass) {
      for (Operand& operand : instruction.operands) {
        if (operand.location == Location::kArena) operand.tensor = place_of(operand.tensor);
      }
    }
  }
}

}  // namespace troupe::model
