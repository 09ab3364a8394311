#include "model/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/buffer.h"

namespace troupe::model {
namespace {

constexpr std::size_t kAlignment = runtime::Buffer::kAlignment;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool meet(const TensorLife& a, const TensorLife& b) {
  for (const LiveInterval& x : a.live) {
    for (const LiveInterval& y : b.live) {
      if (x.first <= y.last && y.first <= x.last) return true;
    }
  }
  return false;
}

// Walks the instructions in every order that passes may run in, on one time line. A tensor gets an
// interval per order in which it occurs, from its first instruction to its last.
class LifeRecorder {
 public:
  LifeRecorder(const InstructionLists& lists, DataType type)
      : lists_(lists), lives_(lists.tensors.size()) {
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      lives_[i].bytes = static_cast<std::size_t>(lists.tensors[i].elements) * bytes_of(type);
    }
  }

  // One order of passes; a pass that is not compiled has no instructions.
  void run(std::span<const Pass> passes) {
    const int start = now_;
    for (const Pass pass : passes) {
      for (const Instruction& instruction : lists_.passes[static_cast<std::size_t>(pass)]) {
        for (const Operand& operand : instruction.operands) {
          if (operand.location == Location::kArena) touch(operand.tensor, start);
        }
        ++now_;
      }
    }
    for (const int output : lists_.outputs) keep(output, start);
    keep(lists_.input_gradient, start);
    if (lists_.columns_gradient >= 0) keep(lists_.columns_gradient, start);
    ++now_;
  }

  std::vector<TensorLife> finish(bool with_backward) {
    for (const int input : {lists_.input, lists_.conditions, lists_.columns}) {
      if (input >= 0) lives_[index(input)].live = {{0, now_}};
    }
    if (with_backward) {
      for (const int gradient : lists_.output_gradients) lives_[index(gradient)].live = {{0, now_}};
    }
    return std::move(lives_);
  }

 private:
  static std::size_t index(int tensor) { return static_cast<std::size_t>(tensor); }

  void touch(int tensor, int start) {
    std::vector<LiveInterval>& live = lives_[index(tensor)].live;
    if (live.empty() || live.back().first < start) {
      live.push_back({now_, now_});
    } else {
      live.back().last = now_;
    }
  }
  // Extends a tensor of this order beyond its last instruction.
  void keep(int tensor, int start) {
    std::vector<LiveInterval>& live = lives_[index(tensor)].live;
    if (!live.empty() && live.back().first >= start) live.back().last = now_;
  }

  const InstructionLists& lists_;
  std::vector<TensorLife> lives_;
  int now_ = 0;
};

// First fit: each tensor goes to the lowest offset at which no tensor that lives at the same time
// lies. `placed` is sorted by offset, so one walk finds the gap. The best plan would be hard to
// find; least_bytes() bounds it from below.
MemoryPlan place_in_order(std::span<const TensorLife> tensors,
                          const std::vector<std::size_t>& order) {
  MemoryPlan plan;
  plan.offsets.assign(tensors.size(), 0);
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t tensor : order) {
    const std::size_t bytes = aligned(tensors[tensor].bytes);
    std::size_t offset = 0;
    for (const std::size_t other : placed) {
      if (plan.offsets[other] >= offset + bytes) break;
      if (meet(tensors[tensor], tensors[other])) {
        offset = std::max(offset, plan.offsets[other] + aligned(tensors[other].bytes));
      }
    }
    plan.offsets[tensor] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    const auto behind = std::upper_bound(
        placed.begin(), placed.end(), tensor,
        [&](std::size_t a, std::size_t b) { return plan.offsets[a] < plan.offsets[b]; });
    placed.insert(behind, tensor);
  }
  return plan;
}

}  // namespace

std::vector<TensorLife> tensor_lives(const InstructionLists& lists, DataType type) {
  const auto compiled = [&](Pass pass) { return lists.compiled[static_cast<std::size_t>(pass)]; };
  LifeRecorder recorder(lists, type);
  // Inference is an order of its own: it may overwrite all that training keeps, except the tensors
  // that the caller holds.
  recorder.run(std::array{Pass::kForwardTraining, Pass::kBackwardParameters});
  recorder.run(std::array{Pass::kForwardTraining, Pass::kBackwardInput});
  recorder.run(std::array{Pass::kForwardInference});
  return recorder.finish(compiled(Pass::kBackwardParameters) || compiled(Pass::kBackwardInput));
}

std::size_t least_bytes(std::span<const TensorLife> tensors) {
  std::size_t least = 0;
  for (const TensorLife& begins : tensors) {
    for (const LiveInterval& interval : begins.live) {
      std::size_t sum = 0;
      for (const TensorLife& other : tensors) {
        if (meet({0, {{interval.first, interval.first}}}, other)) sum += aligned(other.bytes);
      }
      least = std::max(least, sum);
    }
  }
  return least;
}

std::size_t bytes_without_sharing(std::span<const TensorLife> tensors) {
  std::size_t sum = 0;
  for (const TensorLife& tensor : tensors) {
    if (!tensor.live.empty()) sum += aligned(tensor.bytes);
  }
  return sum;
}

MemoryPlan plan_memory(std::span<const TensorLife> tensors) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].live.empty()) order.push_back(i);
  }
  const auto by_time = [&](std::size_t a, std::size_t b) {
    return tensors[a].live.front().first < tensors[b].live.front().first;
  };
  const auto by_size = [&](std::size_t a, std::size_t b) {
    return tensors[a].bytes > tensors[b].bytes;
  };
  std::stable_sort(order.begin(), order.end(), by_time);
  MemoryPlan early_first = place_in_order(tensors, order);
  std::stable_sort(order.begin(), order.end(), by_size);
  MemoryPlan large_first = place_in_order(tensors, order);
  return large_first.bytes <= early_first.bytes ? large_first : early_first;
}

}  // namespace troupe::model
