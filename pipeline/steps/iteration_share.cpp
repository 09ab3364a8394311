#include "pipeline/steps/iteration_share.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/base/error.h"

namespace troupe::pipeline {

IterationShare::IterationShare(std::uint64_t iteration, std::vector<MicroBatch> micro_batches,
                               std::optional<SpotCheck> check, bool witness)
    : iteration_(iteration),
      micro_batches_(std::move(micro_batches)),
      check_(check),
      witness_(witness) {
  CHECK(iteration <= std::numeric_limits<std::uint32_t>::max(), "iterations have 32 bits");
  CHECK(!witness ||
            (check && !micro_batches_.empty() && micro_batches_.back().index == check->micro_batch),
        "a witness has what it is to compute");
}

bool IterationShare::has(std::uint32_t index) const {
  for (std::size_t i = 0; i < size(); ++i) {
    if (micro_batches_[i].index == index) return true;
  }
  return false;
}

std::size_t IterationShare::computed_in(std::uint32_t slot) const {
  return size() + (witness_ && check_->slot == slot ? 1 : 0);
}

std::optional<std::size_t> IterationShare::checked_in(std::uint32_t slot) const {
  if (!check_ || check_->slot != slot) return std::nullopt;
  const auto found =
      std::find_if(micro_batches_.begin(), micro_batches_.end(),
                   [&](const MicroBatch& each) { return each.index == check_->micro_batch; });
  if (found == micro_batches_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - micro_batches_.begin());
}

void IterationShare::take_over(std::vector<MicroBatch> micro_batches) {
  // The micro-batch that is only compared stands last, and is given up.
  if (witness_) micro_batches_.pop_back();
  witness_ = false;
  released_ = std::min(released_, micro_batches_.size());
  for (MicroBatch& each : micro_batches) micro_batches_.push_back(std::move(each));
}

void IterationShare::sort() {
  CHECK(released_ == 0 && !witness_, "events to begin anew with");
  std::ranges::sort(micro_batches_, {}, &MicroBatch::index);
}

void IterationShare::release_events(std::size_t count) {
  CHECK(count <= micro_batches_.size());
  for (; released_ < count; ++released_) micro_batches_[released_].events = {};
}

}  // namespace troupe::pipeline
