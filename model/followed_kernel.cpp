#include "model/followed_kernel.h"

#include <functional>
#include <utility>

namespace troupe::model {

FollowedKernel::FollowedKernel(std::unique_ptr<const Kernel> first, std::size_t operands,
                               std::unique_ptr<const Kernel> follower)
    : first_(std::move(first)), operands_(operands), follower_(std::move(follower)) {
  CHECK(first_->tells_parts() && follower_->runs_elements(), "one that can follow the other");
}

void FollowedKernel::run(std::span<void* const> operands, const runtime::RandomPosition& random,
                         std::byte* scratch) const {
  run_together(operands, random, Crew(scratch));
}

void FollowedKernel::run_together(std::span<void* const> operands,
                                  const runtime::RandomPosition& random, const Crew& crew) const {
  run_in_parts(operands, random, crew, [](const ElementRange&) {});
}

void FollowedKernel::run_in_parts(std::span<void* const> operands,
                                  const runtime::RandomPosition& random, const Crew& crew,
                                  const PartDone& part_done) const {
  const auto follow = [&](const ElementRange& part) {
    follower_->run_elements(operands.subspan(operands_), random, part);
    part_done(part);
  };
  // A reference, which std::function keeps without memory of its own.
  first_->run_in_parts(operands.first(operands_), random, crew, std::cref(follow));
}

}  // namespace troupe::model
