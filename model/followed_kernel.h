#pragma once

// A kernel with an elementwise one that changes its result in place, part by part, while the part
// is in the processor's cache. The bits are those of one kernel after the other.

#include <memory>

#include "model/backend.h"

namespace troupe::model {

class FollowedKernel final : public Kernel {
 public:
  // `first` tells its parts and has so many operands; those of `follower`, which runs elements,
  // stand behind them.
  FollowedKernel(std::unique_ptr<const Kernel> first, std::size_t operands,
                 std::unique_ptr<const Kernel> follower);

  std::size_t scratch_bytes() const override { return first_->scratch_bytes(); }
  double products() const override { return first_->products(); }
  void run(std::span<void* const> operands, const runtime::RandomPosition& random,
           std::byte* scratch) const override;
  void run_together(std::span<void* const> operands, const runtime::RandomPosition& random,
                    const Crew& crew) const override;
  bool tells_parts() const override { return true; }
  void run_in_parts(std::span<void* const> operands, const runtime::RandomPosition& random,
                    const Crew& crew, const PartDone& part_done) const override;

 private:
  const std::unique_ptr<const Kernel> first_;
  const std::size_t operands_;
  const std::unique_ptr<const Kernel> follower_;
};

}  // namespace troupe::model
