// Training by two members in a lossy format, with error feedback and without.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "pipeline/steps/bucket_arithmetic.h"
#include "tests/training/alone.h"

namespace troupe::training_test {
namespace {

using pipeline::BucketArithmetic;
using pipeline::ReductionFormat;
using runtime::Buffer;

constexpr std::uint32_t kMembers = 2;

// The toy's discriminator, whose tensors all share the blocks of int8, by plain gradient descent:
// what a step drops is lost for good, and what it adds is not normalised away.
class Members {
 public:
  Members(ReductionFormat format, bool with_feedback)
      : alone_(zoo_topology("toy", {"train.schedule=[d_real, d_fake]", "train.optimiser.d=sgd",
                                    "train.learning_rate.d=1e-4"}),
               model::make_cpu_backend()),
        options_(alone_.options()),
        with_feedback_(with_feedback),
        team_(1),
        computer_(alone_.gan(), options_, team_),
        state_(alone_.initial_state()) {
    options_.lossy = format;
    forget();
  }

  std::vector<float> weights_after(int iterations) {
    for (int i = 0; i < iterations; ++i) {
      for (std::size_t slot = 0; slot < options_.schedule.size(); ++slot) step();
    }
    return state_.discriminator.weights;
  }

 private:
  void forget() {
    std::vector<std::size_t> floats;
    for (const model::SlotKind slot : options_.schedule) {
      const auto layout =
          pipeline::sum_layout(alone_.gan().contributions(slot), options_.gradient_sums());
      floats.push_back(static_cast<std::size_t>(layout.floats()));
    }
    members_ = std::vector<BucketArithmetic>(kMembers, BucketArithmetic(options_.lossy, floats));
  }

  pipeline::StepShare share_of(std::uint32_t member) {
    std::vector<pipeline::MicroBatch> own;
    for (std::uint32_t m = member; m < options_.micro_batches; m += kMembers) {
      own.push_back(alone_.micro_batch(m, state_.iteration * 100 + m));
    }
    pipeline::StepShare share(
        alone_.gan(), options_,
        std::make_shared<pipeline::IterationShare>(state_.iteration, std::move(own)), state_.slot);
    while (computer_.compute(state_, share)) {
    }
    return share;
  }

  static pipeline::StepHeader combined(const std::vector<Contribution>& parts) {
    pipeline::StepHeader header = parts[0].header;
    pipeline::combine(parts[1].header, header);
    return header;
  }

  Buffer reduce(const std::vector<Contribution>& parts) {
    const pipeline::SumLayout layout = parts[0].layout;
    Buffer sums = Buffer::zeroed(layout.bytes());
    for (const pipeline::Bucket& bucket :
         {pipeline::Bucket{0, layout.floats(), pipeline::SumKind::kFloat32},
          pipeline::Bucket{layout.floats(), layout.elements - layout.floats()}}) {
      const std::size_t offset = layout.offset(bucket.offset);
      const auto part = [&](std::size_t member) {
        return parts[member].sums.slice(offset, bucket.bytes());
      };
      const Buffer first = members_[0].add(state_.slot, bucket, {}, part(0));
      const Buffer wire = members_[1].add(state_.slot, bucket, {{first}}, part(1));
      const Buffer sum = members_[1].sum_from(bucket, wire);
      std::ranges::copy(sum.bytes(), sums.mutable_data() + offset);
    }
    for (BucketArithmetic& member : members_) member.close(state_.slot, true);
    return sums;
  }

  void step() {
    if (!with_feedback_) forget();
    const std::vector<pipeline::StepShare> shares{share_of(0), share_of(1)};
    std::vector<std::int16_t> scales = state_.scales[state_.slot];
    const auto contribute = [&](std::uint32_t attempt) {
      return std::vector<Contribution>{contribution_of(shares[0], attempt, scales),
                                       contribution_of(shares[1], attempt, scales)};
    };
    std::vector<Contribution> parts = contribute(0);
    if (combined(parts).flagged) {
      scales = pipeline::scales_after(scales, combined(parts), options_.micro_batches);
      parts = contribute(1);
    }
    const pipeline::StepRecord record{combined(parts), scales, reduce(parts),
                                      parts[0].layout.front};
    CHECK(pipeline::apply(alone_.gan(), options_, record, state_).ok());
  }

  Alone alone_;
  pipeline::TrainingOptions options_;
  const bool with_feedback_;
  runtime::ThreadTeam team_;
  pipeline::StepComputer computer_;
  pipeline::TrainingState state_;
  std::vector<BucketArithmetic> members_;
};

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double square = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    square += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
  }
  return std::sqrt(square);
}

// Either is a small part of the way that training has made; what is dropped adds up all the same.
TEST(LossyTraining, ErrorFeedbackKeepsItTenTimesNearerToTheWeightsOfFullFloats) {
  constexpr int kIterations = 200;
  const auto full = Members(ReductionFormat::kFp32, true).weights_after(kIterations);
  const double with =
      distance(Members(ReductionFormat::kInt8, true).weights_after(kIterations), full);
  const double without =
      distance(Members(ReductionFormat::kInt8, false).weights_after(kIterations), full);
  EXPECT_GT(with, 0.0);
  EXPECT_GT(without, 10 * with);
  EXPECT_LT(without, distance(Members(ReductionFormat::kFp32, true).weights_after(0), full) / 10);
}

}  // namespace
}  // namespace troupe::training_test
