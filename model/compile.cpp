#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/followed_kernel.h"
#include "model/layer_rules.h"
#include "model/program_content.h"

namespace troupe::model {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

Error topology_error(const NetworkDescription& network, const std::string& text) {
  return {ErrorKind::kTopology, fmt::format("network {}: {}", network.name, text)};
}

// One sample may fit where a batch does not. Noise for the input and dropout draw one number per
// element from a counter of 32 bits.
Result<void> check_batch(const NetworkDescription& network, const NetworkShapes& shapes,
                         std::int64_t batch) {
  if (batch < 1) {
    return topology_error(network, fmt::format("a micro-batch of {} events; 1 or more", batch));
  }
  if (batch > kMostWeights / network.input.elements()) {
    return topology_error(network, fmt::format("an input of {} elements for each of {} events has "
                                               "more than {}; use a smaller micro-batch",
                                               network.input.elements(), batch, kMostWeights));
  }
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const bool draws = std::holds_alternative<Dropout>(network.layers[i].kind);
    const std::int64_t most = draws ? kMostWeights : kMostElements;
    if (batch > most / shapes.layers[i].elements()) {
      return topology_error(
          network, fmt::format("layer {} ({}): {} elements for each of {} events are more than {}; "
                               "use a smaller micro-batch",
                               network.layers[i].name, kind_name(network.layers[i].kind),
                               shapes.layers[i].elements(), batch, most));
    }
  }
  return {};
}

}  // namespace

class Program::Compiler {
 public:
  Compiler(Content& content, const Backend& backend) : content_(content), backend_(backend) {}

  Result<void> compile(const ProgramOptions& options) {
    content_.parameters = layout_parameters(content_.network, content_.shapes);
    content_.batch = options.batch;
    content_.data_type = backend_.data_type();
    content_.memory = &backend_.memory();
    content_.group = backend_.group();
    content_.lists =
        make_instructions(content_.network, content_.shapes, content_.parameters, options);
    share_places(content_.lists);
    content_.lives = tensor_lives(content_.lists, content_.data_type);
    for (TensorLife& life : content_.lives) life.bytes *= static_cast<std::size_t>(content_.group);
    content_.plan = plan_memory(content_.lives);
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      for (std::size_t i = 0; i < content_.lists.passes[pass].size(); ++i) {
        RETURN_IF_ERROR(add_call(pass, i));
      }
    }
    note_final_gradients();
    return {};
  }

 private:
  Result<void> add_call(std::size_t pass, std::size_t index) {
    const Instruction& instruction = content_.lists.passes[pass][index];
    Result<std::unique_ptr<Kernel>> kernel = backend_.make_kernel(instruction.operation);
    if (!kernel.ok()) return describe(kernel.error(), instruction);
    content_.scratch_bytes = std::max(content_.scratch_bytes, (*kernel)->scratch_bytes());
    if ((*kernel)->runs_elements() && can_follow(pass, index)) {
      Call& call = content_.calls[pass].back();
      call.kernel = std::make_unique<FollowedKernel>(std::move(call.kernel), call.operand_count,
                                                     std::move(kernel).value());
    } else {
      content_.calls[pass].emplace_back().kernel = std::move(kernel).value();
    }
    Call& call = content_.calls[pass].back();
    call.end = index + 1;
    if (instruction.of_round) call.round = instruction.layer;
    for (const Operand& operand : instruction.operands) {
      call.operands[call.operand_count++] = place(operand);
      content_.reads_or_writes[pass][static_cast<std::size_t>(operand.location)] = true;
    }
    return {};
  }

  // An elementwise instruction follows the call before it if it changes that call's result in
  // place.
  bool can_follow(std::size_t pass, std::size_t index) const {
    if (index == 0) return false;
    const Instruction& instruction = content_.lists.passes[pass][index];
    const Call& before = content_.calls[pass].back();
    if (!before.kernel->tells_parts() ||
        before.operand_count + instruction.operands.size() > kMostOperands) {
      return false;
    }
    const Operand& result = content_.lists.passes[pass][index - 1].operands.back();
    const auto is_result = [&](const Operand& operand) {
      return operand.location == Location::kArena && operand.tensor == result.tensor;
    };
    return is_result(result) && is_result(instruction.operands[instruction.operands.size() - 2]) &&
           is_result(instruction.operands.back());
  }

  // The backward pass reaches the weights from the last layer to the first, except where the
  // network branches. The ranges that instructions write tile the gradients: each ends where the
  // next one begins.
  void note_final_gradients() {
    const std::size_t pass = static_cast<std::size_t>(Pass::kBackwardParameters);
    const auto& instructions = content_.lists.passes[pass];
    // Gradients from an element on are final when the last instruction that writes any range from
    // there to the end has run.
    std::map<std::int64_t, std::size_t> last_write;  // by the element that an operand begins at
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      for (const Operand& operand : instructions[i].operands) {
        if (operand.location == Location::kGradients) last_write[operand.offset] = i;
      }
    }
    std::int64_t final_from = content_.parameters.weights_size;
    auto next = last_write.rbegin();
    for (Call& call : content_.calls[pass]) {
      for (; next != last_write.rend() && next->second < call.end; ++next) final_from = next->first;
      call.gradients_final_from = final_from;
    }
  }

  Place place(const Operand& operand) const {
    if (operand.location == Location::kArena) {
      const auto tensor = static_cast<std::size_t>(operand.tensor);
      return {operand.location, content_.plan.offsets[tensor],
              content_.lists.tensors[tensor].elements};
    }
    return {operand.location,
            static_cast<std::size_t>(operand.offset) * bytes_of(content_.data_type), 0};
  }

  Error describe(const Error& error, const Instruction& instruction) const {
    const auto& layers = content_.network.layers;
    const std::string name =
        instruction.layer < 0 ? "" : layers[static_cast<std::size_t>(instruction.layer)].name;
    return {error.kind, fmt::format("network {}, layer {}, {}: {}", content_.network.name, name,
                                    operation_name(instruction.operation), error.message)};
  }

  Content& content_;
  const Backend& backend_;
};

Result<std::unique_ptr<const Program>> Program::compile(const NetworkDescription& network,
                                                        const Backend& backend,
                                                        const ProgramOptions& options) {
  auto content = std::make_unique<Content>();
  content->network = network;
  content->shapes = infer_shapes(network);
  if (!content->shapes.problems.empty()) {
    return topology_error(network, content->shapes.problems.front().message);
  }
  RETURN_IF_ERROR(check_batch(network, content->shapes, options.batch));
  RETURN_IF_ERROR(Compiler(*content, backend).compile(options));
  return std::unique_ptr<const Program>(new Program(std::move(content)));
}

}  // namespace troupe::model
