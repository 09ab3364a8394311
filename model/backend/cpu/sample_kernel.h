#pragma once

// Kernels whose samples are computed each on its own, and so by as many threads.

#include <cstdint>

#include "model/backend.h"
#include "model/backend/kernel_call.h"

namespace troupe::model::cpu {

class SampleKernel : public Kernel {
 public:
  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const final {
    run_together(operands, random, Crew(scratch));
  }

  void run_together(std::span<void* const> operands, const runtime::RandomPosition& random,
                    const Crew& all) const final {
    const Crew crew = all.for_work(products(), 1);
    const KernelCall call{operands, random, crew.scratch()};
    prepare(call);
    crew.run(samples(),
             [&](std::int64_t n, int thread) { run_sample(call, n, crew.scratch(thread)); });
  }

 private:
  virtual std::int64_t samples() const = 0;
  // Once, in the call's scratch memory, which samples read and keep apart from theirs.
  virtual void prepare(const KernelCall& call) const = 0;
  // With all that is the sample's own in `scratch`, which may be the call's.
  virtual void run_sample(const KernelCall& call, std::int64_t n, std::byte* scratch) const = 0;
};

}  // namespace troupe::model::cpu
