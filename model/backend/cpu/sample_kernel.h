#pragma once

// Kernels that compute samples on their own, one or a few at a time, so that threads can divide
// them.

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
    crew.run(shares(),
             [&](std::int64_t share, int thread) { run_share(call, share, crew.scratch(thread)); });
  }

 private:
  // Samples, or parts of the micro-batch that have several.
  virtual std::int64_t shares() const = 0;
  // Called once per run. Writes to the call's scratch memory, which the shares read; each share
  // writes to memory of its own.
  virtual void prepare(const KernelCall& call) const = 0;
  // `scratch` holds all that is the share's own; it may be the call's.
  virtual void run_share(const KernelCall& call, std::int64_t share, std::byte* scratch) const = 0;
};

}  // namespace troupe::model::cpu
