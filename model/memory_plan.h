#pragma once

// Offsets of a Program's tensors in one arena: tensors that are never needed at the same time may
// share bytes. Pure.

#include <cstddef>
#include <span>
#include <vector>

#include "model/instructions.h"
#include "model/tensor.h"

namespace troupe::model {

// Both ends belong to it.
struct LiveInterval {
  int first = 0, last = 0;
};

// The times at which a tensor's bytes matter. Times are positions in a list that strings together
// every order the passes may run in, so one tensor can have several intervals. No interval: the
// tensor is unused.
struct TensorLife {
  std::size_t bytes = 0;
  std::vector<LiveInterval> live;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // per tensor, multiples of Buffer::kAlignment
  std::size_t bytes = 0;
};

// Lives of all tensors over these orders, one after the other: forward in training then backward to
// parameters; forward in training then backward to the input; forward in inference. A tensor lives
// from its first use in an order to its last. The inputs and the output gradients live always, as
// the caller fills them; outputs and input gradient live to the end of an order, as the caller
// reads them.
std::vector<TensorLife> tensor_lives(const InstructionLists& lists, DataType type);

// The bytes that every plan needs: the largest sum of tensors that live at one time.
std::size_t least_bytes(std::span<const TensorLife> tensors);

// The bytes of an arena in which nothing shares.
std::size_t bytes_without_sharing(std::span<const TensorLife> tensors);

// Places tensors one by one at the lowest offset free during their lives, once the large ones first
// and once in the order of time, and returns the smaller plan.
MemoryPlan plan_memory(std::span<const TensorLife> tensors);

}  // namespace troupe::model
