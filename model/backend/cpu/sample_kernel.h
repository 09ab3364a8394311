#pragma once

// Kernels that compute each sample on its own, so that threads can divide the samples.

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
                    const Crew& crew) const final {
    run_samples(operands, random, crew, nullptr);
  }

 protected:
  void run_samples(std::span<void* const> operands, const runtime::RandomPosition& random,
                   const Crew& all, const PartDone* part_done) const {
    const Crew crew = all.for_work(products(), 1);
    const KernelCall call{operands, random, crew.scratch(), part_done};
    prepare(call);
    crew.run(samples(),
             [&](std::int64_t n, int thread) { run_sample(call, n, crew.scratch(thread)); });
  }

 private:
  virtual std::int64_t samples() const = 0;
  // Called once per run. Writes to the call's scratch memory, which the samples read; each sample
  // writes to memory of its own.
  virtual void prepare(const KernelCall& call) const = 0;
  // `scratch` holds all that is the sample's own; it may be the call's.
  virtual void run_sample(const KernelCall& call, std::int64_t n, std::byte* scratch) const = 0;
};

}  // namespace troupe::model::cpu
