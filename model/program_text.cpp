#include <fmt/format.h>

#include "model/program_content.h"

namespace troupe::model {
namespace {

constexpr std::array<const char*, kPasses> kPassNames{"forward_training", "forward_inference",
                                                      "backward_parameters", "backward_input"};

const char* buffer_name(Location location) {
  switch (location) {
    case Location::kNull:
      return "none";
    case Location::kArena:
      return "arena";
    case Location::kWeights:
      return "weights";
    case Location::kMoving:
      return "moving";
    case Location::kGradients:
      return "gradients";
    case Location::kStatistics:
      return "statistics";
    case Location::kShared:
      return "shared";
    case Location::kShares:
      return "shares";
  }
  CHECK(false, "unknown location");
}

std::string print_tensors(const InstructionLists& lists, const std::vector<TensorLife>& lives,
                          const MemoryPlan& plan) {
  std::string text;
  for (std::size_t i = 0; i < lists.tensors.size(); ++i) {
    if (lives[i].live.empty()) continue;
    text += fmt::format("  {:>12} {:>12}  {}\n", plan.offsets[i], lives[i].bytes,
                        lists.tensors[i].name);
  }
  return text;
}

std::string print_operand(const Operand& operand, const InstructionLists& lists,
                          const MemoryPlan& plan) {
  if (operand.location == Location::kNull) return " none";
  const char* mark = operand.access == Access::kRead     ? " "
                     : operand.access == Access::kUpdate ? " +> "
                                                         : " -> ";
  if (operand.location != Location::kArena) {
    return fmt::format("{}{}[{}]", mark, buffer_name(operand.location), operand.offset);
  }
  const auto tensor = static_cast<std::size_t>(operand.tensor);
  return fmt::format("{}{{{}}}@{}", mark, lists.tensors[tensor].name, plan.offsets[tensor]);
}

}  // namespace

std::string Program::print() const {
  const Content& content = *content_;
  const InstructionLists& lists = content.lists;
  std::string text = fmt::format(
      "program of {}: micro-batches of {}, arena {} bytes (at least {}, {} without sharing), "
      "scratch {} bytes\ntensors in the arena: offset, bytes, name\n",
      content.network.name, content.batch, content.plan.bytes, least_bytes(content.lives),
      bytes_without_sharing(content.lives), content.scratch_bytes);
  text += print_tensors(lists, content.lives, content.plan);
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    if (!lists.compiled[pass]) continue;
    text += fmt::format("{}: {} instructions\n", kPassNames[pass], lists.passes[pass].size());
    for (const Instruction& instruction : lists.passes[pass]) {
      const auto layer = static_cast<std::size_t>(instruction.layer);
      const std::string name = instruction.layer < 0 ? "-" : content.network.layers[layer].name;
      text += fmt::format("  {:<32} {:<20}", operation_name(instruction.operation), name);
      for (const Operand& operand : instruction.operands) {
        text += print_operand(operand, lists, content.plan);
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace troupe::model
