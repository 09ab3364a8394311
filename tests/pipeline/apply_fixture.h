#pragma once

// Steps of the example of tests/pipeline/state_example.h, one after the other.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/steps/training_state.h"
#include "tests/pipeline/state_example.h"

namespace troupe::pipeline {

class Apply : public ::testing::Test {
 protected:
  using Contributions = std::vector<std::vector<float>>;

  TrainingState initial() const {
    return initial_state(example_.layout, example_.options, "class", {});
  }
  model::SlotKind slot_of(const TrainingState& state) const {
    return example_.options.schedule[state.slot];
  }

  Contributions random(const TrainingState& state) const {
    return random_contributions(example_, slot_of(state),
                                static_cast<std::uint32_t>(state.step(4)) + 1);
  }
  // Every micro-batch contributes the same: `value` everywhere, and these numbers by name.
  Contributions constant(const TrainingState& state, float value,
                         const std::vector<std::pair<std::string, float>>& named = {}) const {
    const auto& layout = example_.layout.of(slot_of(state));
    std::vector<float> one(static_cast<std::size_t>(layout.size), value);
    if (const int empty = layout.find("empty_images"); empty >= 0) one.back() = 0.0f;
    for (const auto& [name, number] : named) {
      const int tensor = layout.find(name);
      if (tensor < 0) continue;
      one[static_cast<std::size_t>(layout.tensors[static_cast<std::size_t>(tensor)].offset)] =
          number;
    }
    return Contributions(example_.options.micro_batches, one);
  }
  runtime::Result<void> step(TrainingState& state, const Contributions& contributions,
                             const Sharing& sharing = {}) const {
    return apply(example_.layout, example_.options, reduce(example_, state, contributions, sharing),
                 state);
  }
  // Random steps up to the first step of an iteration; all succeed.
  void iterate(TrainingState& state, int iterations, const Sharing& sharing = {}) const {
    for (int i = 0; i < 4 * iterations; ++i) ASSERT_TRUE(step(state, random(state), sharing).ok());
  }

  // The record of the same step in a lossy reduction that drops nothing.
  StepRecord as_floats(const model::ContributionLayout& layout, const StepRecord& exact,
                       const Contributions& contributions) const {
    const SumLayout sums = sum_layout(layout, SumKind::kFloat32);
    StepRecord record{exact.header, exact.scales, runtime::Buffer::zeroed(sums.bytes()),
                      sums.front};
    StepHeader header = exact.header;
    for (std::uint32_t m = 0; m < contributions.size(); ++m) {
      add_micro_batch(layout, contributions[m], m, example_.options.micro_batches, 1, exact.scales,
                      sums.parts_of(record.sums), header);
    }
    return record;
  }
  static void expect_same(const NetworkState& a, const NetworkState& b) {
    EXPECT_EQ(a.weights, b.weights);
    EXPECT_EQ(a.moving, b.moving);
    EXPECT_EQ(a.optimiser_arrays, b.optimiser_arrays);
  }

  StateExample example_ = state_example();
};

}  // namespace troupe::pipeline
