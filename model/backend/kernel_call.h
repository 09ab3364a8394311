#pragma once

// The arguments that a backend's own code gets for one run of a Kernel.

#include <cstddef>
#include <span>

#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace troupe::model {

struct KernelCall {
  std::span<void* const> operands;  // as the Operation's comment lists them
  const runtime::RandomPosition& random;
  std::byte* scratch = nullptr;  // as many bytes as the Kernel asked for, aligned to 64

  // Operand `index` as an array of T; null where the Operation allows it. A list that is too short
  // is a defect of the caller and ends the process.
  template <class T>
  T* operand(std::size_t index) const {
    CHECK(index < operands.size(), "an operation got fewer operands than it lists");
    return static_cast<T*>(operands[index]);
  }
};

}  // namespace troupe::model
