#pragma once

// The arguments that a backend's own code gets for one run of a Kernel.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace troupe::model {

// Elements of an operand, `end` not included.
struct ElementRange {
  std::int64_t begin = 0, end = 0;
};
// Called when these elements of a Kernel's result are there, by the thread that computed them.
using PartDone = std::function<void(const ElementRange&)>;

struct KernelCall {
  std::span<void* const> operands;  // as the Operation's comment lists them
  const runtime::RandomPosition& random;
  std::byte* scratch = nullptr;         // as many bytes as the Kernel asked for, aligned to 64
  const PartDone* part_done = nullptr;  // nobody is told, if null

  // Operand `index` as an array of T; null where the Operation allows it. A list that is too short
  // is a defect of the caller and ends the process.
  template <class T>
  T* operand(std::size_t index) const {
    CHECK(index < operands.size(), "an operation got fewer operands than it lists");
    return static_cast<T*>(operands[index]);
  }
};

}  // namespace troupe::model
