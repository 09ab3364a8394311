#include "pipeline/steps/step_record.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "model/exact_sum.h"
#include "runtime/base/random.h"
#include "tests/pipeline/state_example.h"

namespace troupe::pipeline {
namespace {

using ::testing::HasSubstr;

constexpr runtime::Hash128 kState{5, 6};

StepHeader header_of(std::uint64_t step) {
  StepHeader header;
  header.step = step;
  header.exponents.assign(3, model::kNoExponent);
  header.state_minimum = header.state_maximum = kState;
  return header;
}

// Every field drawn, most of them of few values, so that ties occur.
StepHeader random_header(std::uint32_t number) {
  auto draw = [number, index = 0u](std::uint32_t below) mutable {
    return runtime::random_word({.seed = 2, .micro_batch = number}, index++) % below;
  };
  StepHeader header = header_of(9);
  for (auto& exponent : header.exponents) {
    exponent = draw(3) == 0 ? model::kNoExponent : static_cast<std::int16_t>(draw(250)) - 140;
  }
  header.flagged = draw(4) == 0;
  if (draw(3) == 0) header.non_finite = {draw(4), draw(3)};
  header.micro_batches = draw(5);
  header.events = draw(100);
  header.event_sum = (std::uint64_t{draw(UINT32_MAX)} << 32) | draw(UINT32_MAX);
  header.state_minimum = header.state_maximum = {draw(2), draw(1000)};
  if (draw(2) == 0) header.check_minimum = header.check_maximum = {draw(2), draw(1000)};
  header.judged = draw(4) == 0;
  if (header.judged) header.distance = draw(3);
  for (std::uint32_t worker = 0; worker < 4; ++worker) {
    if (draw(2) == 0) header.next.push_back({draw(3), worker});
  }
  std::ranges::sort(header.next);
  header.stop_requested = draw(4) == 0;
  header.checkpoint_requested = draw(4) == 0;
  return header;
}

StepHeader combined(StepHeader left, const StepHeader& right) {
  combine(right, left);
  return left;
}

TEST(StepHeader, CombinesAssociativelyAndCommutatively) {
  for (std::uint32_t i = 0; i < 200; ++i) {
    const StepHeader a = random_header(3 * i), b = random_header(3 * i + 1),
                     c = random_header(3 * i + 2);
    EXPECT_EQ(combined(a, b), combined(b, a));
    EXPECT_EQ(combined(combined(a, b), c), combined(a, combined(b, c)));
  }
}

TEST(StepHeader, NextTurnIsOfTheWorkersThatAreReadyFirst) {
  TrainingOptions options;
  options.strategy.kind = StrategyKind::kQuorum;
  options.strategy.workers = 8;
  options.strategy.of = 3;
  options.schedule = {3, model::SlotKind::kWorkers};
  StepHeader header, of_another;
  header.next = {{0, 5}, {4, 1}, {90, 7}};
  of_another.next = {{0, 5}, {2, 6}, {5, 1}};
  combine(of_another, header);
  EXPECT_EQ(header.next.size(), 4u) << "one offer of each worker, the least";
  EXPECT_EQ(turn_behind(header, options).numbers(), (std::vector<std::uint32_t>{1, 5, 6}));
  header.step = 4;  // that behind it is an iteration's last one
  EXPECT_EQ(turn_behind(header, options).numbers(), (std::vector<std::uint32_t>{5, 6}));
  header.next = {{0, 9}, {0, 300}, {1, 2}};
  EXPECT_EQ(turn_behind(header, options).numbers(), std::vector<std::uint32_t>{2})
      << "nobody else is a worker";
}

TEST(StepHeader, EveryOrderAndGroupingOfMembersGivesTheSame) {
  std::vector<std::uint32_t> order{0, 1, 2, 3, 4, 5};
  std::vector<StepHeader> headers;
  for (const std::uint32_t i : order) headers.push_back(random_header(1000 + i));
  StepHeader expected = headers[0];
  for (std::size_t i = 1; i < headers.size(); ++i) combine(headers[i], expected);
  do {
    StepHeader left = headers[order[0]], right = headers[order[5]];
    for (const std::size_t i : {1u, 2u}) combine(headers[order[i]], left);
    for (const std::size_t i : {3u, 4u}) combine(headers[order[i]], right);
    ASSERT_EQ(combined(right, left), expected);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(StepHeader, DefaultsAreNeutral) {
  StepHeader neutral;
  neutral.step = 9;
  neutral.exponents.assign(3, model::kNoExponent);
  for (std::uint32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(combined(neutral, random_header(i)), random_header(i));
  }
}

TEST(StepHeaderDeathTest, AnotherStepOrAttemptBreaksAnInvariant) {
  StepHeader into = header_of(9);
  EXPECT_DEATH(combine(header_of(8), into), "two steps or attempts");
  StepHeader retried = header_of(9);
  retried.attempt = 1;
  EXPECT_DEATH(combine(retried, into), "two steps or attempts");
}

TEST(EventMix, TellsEventsIterationsAndSlotsApart) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t event = 0; event < 20; ++event) {
    for (std::uint64_t iteration = 0; iteration < 20; ++iteration) {
      for (std::uint32_t slot = 0; slot < 4; ++slot) seen.insert(event_mix(event, iteration, slot));
    }
  }
  EXPECT_EQ(seen.size(), 1600u);
  EXPECT_FALSE(seen.contains(0)) << "an event that counts nothing could be fed twice";
}

class Judge : public ::testing::Test {
 protected:
  std::string divergence(const StepHeader& header) const {
    const auto verdict = judge(header, layout_, options_);
    if (verdict.ok()) return "";
    EXPECT_EQ(verdict.error().kind, runtime::ErrorKind::kDiverged);
    return verdict.error().message;
  }

  const model::ContributionLayout layout_ = state_example().layout.of(model::SlotKind::kDReal);
  StepHeader header_ = header_of(14);
  TrainingOptions options_;  // four steps an iteration
};

TEST_F(Judge, CommitsWhatIsUnflaggedAndFinite) {
  EXPECT_TRUE(judge(header_, layout_, options_).value());
}

TEST_F(Judge, RetriesAFlagOnce) {
  header_.flagged = true;
  EXPECT_FALSE(judge(header_, layout_, options_).value());
  header_.attempt = 1;
  EXPECT_THAT(divergence(header_), HasSubstr("bad memory"));
}

TEST_F(Judge, NamesStepMicroBatchAndTensorOfANaN) {
  header_.flagged = true;
  header_.non_finite = {7, 1};
  const std::string message = divergence(header_);
  EXPECT_THAT(message, HasSubstr("step 14 (iteration 3, slot 2)"));
  EXPECT_THAT(message, HasSubstr("discriminator/hidden/bias of micro-batch 7"));
}

TEST_F(Judge, NamesTheWorkerWhereWorkersTrainAlone) {
  options_.strategy.kind = StrategyKind::kLocal;
  options_ = options_between_members(options_, {});
  header_.non_finite = {3, 1};
  EXPECT_THAT(divergence(header_), AllOf(HasSubstr("step 14 (iteration 14, slot 0)"),
                                         HasSubstr("discriminator/hidden/bias of worker 3")));
  header_.non_finite = {};
  header_.check_minimum = {1, 2};
  header_.check_maximum = {1, 3};
  EXPECT_THAT(divergence(header_), HasSubstr("a worker that was computed twice"));
  header_.exponents.assign(layout_.tensors.size(), 65);
  EXPECT_THAT(divergence(header_), HasSubstr("is 1.8e19 or more in a worker"));
}

TEST_F(Judge, NamesAGradientThatNoOptimiserCanSquare) {
  using Role = model::ContributionTensor::Role;
  for (std::size_t i = 0; i < layout_.tensors.size(); ++i) {
    const model::ContributionTensor& tensor = layout_.tensors[i];
    StepHeader header = header_;
    header.exponents.assign(layout_.tensors.size(), 3);
    header.exponents[i] = 64;
    EXPECT_EQ(divergence(header), "");
    header.exponents[i] = 65;
    header.flagged = true;
    if (tensor.role == Role::kDiscriminatorGradient) {
      EXPECT_THAT(divergence(header), HasSubstr("step 14"));
      EXPECT_THAT(divergence(header), HasSubstr(": " + tensor.name + " is 1.8e19 or more"));
    } else {
      EXPECT_EQ(divergence(header), "") << tensor.name;
    }
  }
}

TEST_F(Judge, NamesTheMembersWhoseSpotCheckDoesNotAgree) {
  const SpotChecks checks{4, 1, 4, 1, {0, 1}, {0, 0, 1}};
  const auto check = checks.of(header_.step / 4);
  ASSERT_TRUE(check.has_value());
  header_.check_minimum = {1, 2};
  header_.check_maximum = {1, 2};
  EXPECT_TRUE(judge(header_, layout_, options_, checks).value());
  header_.check_maximum = {1, 3};
  const auto verdict = judge(header_, layout_, options_, checks);
  ASSERT_FALSE(verdict.ok());
  EXPECT_THAT(verdict.error().message, HasSubstr("step 14 (iteration 3, slot 2)"));
  EXPECT_THAT(verdict.error().message,
              HasSubstr(fmt::format("micro-batch {} gave two results", check->micro_batch)));
  EXPECT_THAT(verdict.error().message, HasSubstr("member.0"));
  EXPECT_THAT(verdict.error().message, HasSubstr("member.1"));
  // What does not fit its scales is not comparable, and is made again.
  header_.flagged = true;
  EXPECT_FALSE(judge(header_, layout_, options_, checks).value());
}

TEST_F(Judge, NamesStatesThatDiffer) {
  header_.state_maximum = {5, 7};
  header_.non_finite = {7, 1};
  const std::string message = divergence(header_);
  EXPECT_THAT(message, HasSubstr("step 14"));
  EXPECT_THAT(message, HasSubstr(header_.state_minimum.text()));
  EXPECT_THAT(message, HasSubstr(header_.state_maximum.text()));
}

// A record of a lossy step whose sums are all 0.5 or 7.
class Overflow : public ::testing::Test {
 protected:
  Overflow() {
    record_.header = header_of(14);
    record_.header.micro_batches = 4;
    record_.front = sums_.front;
    record_.sums = runtime::Buffer::zeroed(sums_.bytes());
    std::ranges::fill(floats(), 0.5F);
    std::ranges::fill(sums_.parts_of(record_.sums).integers, 7);
  }
  std::span<float> floats() { return sums_.parts_of(record_.sums).floats; }
  const model::ContributionTensor& tensor(std::size_t number) const {
    return layout_.tensors[number];
  }

  const model::ContributionLayout layout_ = state_example().layout.of(model::SlotKind::kG);
  const SumLayout sums_ = sum_layout(layout_, SumKind::kFloat32);
  StepRecord record_;
};

TEST_F(Overflow, ThereIsNoneInSumsWhoseMeanCanBeSquaredHoweverLargeTheIntegers) {
  EXPECT_FALSE(overflow(record_, sums_, layout_));
  const float bound = 0x1p64F * static_cast<float>(record_.header.micro_batches);
  std::ranges::fill(floats(), -std::nextafter(bound, 0.0F));
  std::ranges::fill(sums_.parts_of(record_.sums).integers, INT64_MIN);
  EXPECT_FALSE(overflow(record_, sums_, layout_));
}

TEST_F(Overflow, NamesTheStepAndTheFirstTensorThatHasOneAtWhicheverElement) {
  ASSERT_GT(tensor(1).size, 0);
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN(),
        0x1p64F * static_cast<float>(record_.header.micro_batches)}) {
    for (const std::int64_t element : {std::int64_t{0}, tensor(1).size - 1}) {
      floats().back() = bad;
      floats()[static_cast<std::size_t>(tensor(1).offset + element)] = bad;
      const auto error = overflow(record_, sums_, layout_);
      ASSERT_TRUE(error);
      EXPECT_EQ(error->kind, runtime::ErrorKind::kDiverged);
      EXPECT_THAT(error->message, HasSubstr("step 14: the sum of " + tensor(1).name + " is too"));
      floats()[static_cast<std::size_t>(tensor(1).offset + element)] = 0.5F;
    }
  }
}

TEST_F(Overflow, IsFoundInTheLastOfTheFloats) {
  floats().back() = std::numeric_limits<float>::infinity();
  const auto last = std::ranges::find_if(
      layout_.tensors, [&](const auto& each) { return each.offset + each.size == sums_.floats(); });
  ASSERT_NE(last, layout_.tensors.end());
  const auto error = overflow(record_, sums_, layout_);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("the sum of " + last->name + " is too"));
}

// Every bit pattern of them is a number.
TEST_F(Overflow, IsNotLookedForInAnExactReduction) {
  const SumLayout exact = sum_layout(layout_, SumKind::kInt64);
  record_.front = {};
  record_.sums = runtime::Buffer::zeroed(exact.bytes());
  std::ranges::fill(exact.parts_of(record_.sums).integers, -1);
  EXPECT_FALSE(overflow(record_, exact, layout_));
}

TEST(Scales, AreMeasuredPerTensorAndKeptForZeros) {
  StepHeader header = header_of(0);
  header.exponents = {3, model::kNoExponent, -20};
  const std::vector<std::int16_t> before{model::kNoExponent, 17, 5};
  const std::vector<std::int16_t> expected{50 - 3 - 3, 17, 50 - 3 + 20};
  EXPECT_EQ(scales_after(before, header, 6), expected);
}

TEST(Scales, OfRoundedNumbersDoNotGoByHowManyAreSummed) {
  StepHeader header = header_of(0);
  header.exponents = {3, model::kNoExponent, -20};
  const std::vector<std::int16_t> before{model::kNoExponent, 17, 5};
  const std::vector<std::int16_t> expected{6 - 3, 17, 50 - 3 + 20};
  EXPECT_EQ(scales_after(before, header, 6, 2), expected);
}

TEST(Scales, OfRoundedNumbersGrowCoarserAtOnceAndFinerByOneBitInEveryFourthStep) {
  const std::vector<std::int16_t> before{3, 10, -7, 5};
  for (const std::uint64_t step : {8U, 9U, 10U, 11U, 12U}) {
    StepHeader header = header_of(step);
    header.exponents = {3, 3, 3, model::kNoExponent};
    const std::int16_t finer = step % 4 == 0 ? -6 : -7;
    EXPECT_EQ(scales_after(before, header, 6, 4), (std::vector<std::int16_t>{3, 3, finer, 5}));
  }
}

// Fields of a contribution are looked at micro-batch by micro-batch.
class AddMicroBatch : public ::testing::Test {
 protected:
  AddMicroBatch() { header_.exponents.assign(layout_.tensors.size(), model::kNoExponent); }

  void add(std::uint32_t micro_batch, std::int16_t scale) {
    add_micro_batch(layout_, values_, micro_batch, 4, 1,
                    std::vector<std::int16_t>(layout_.tensors.size(), scale), {{}, sums_, {}},
                    header_);
  }
  std::size_t place(std::size_t tensor, std::size_t element) const {
    return static_cast<std::size_t>(layout_.tensors[tensor].offset) + element;
  }

  const model::ContributionLayout layout_ = state_example().layout.of(model::SlotKind::kG);
  std::vector<float> values_ = std::vector<float>(static_cast<std::size_t>(layout_.size), 0.25f);
  std::vector<std::int64_t> sums_ = std::vector<std::int64_t>(values_.size(), 0);
  StepHeader header_;
};

TEST_F(AddMicroBatch, OfALossyReductionAddsGradientsAsTheyAreAndTheRestExactly) {
  const SumLayout layout = sum_layout(layout_, SumKind::kFloat32);
  runtime::Buffer sums = runtime::Buffer::zeroed(layout.bytes());
  const std::vector<std::int16_t> scales(layout_.tensors.size(), 10);
  for (const std::uint32_t micro_batch : {0U, 1U}) {
    add_micro_batch(layout_, values_, micro_batch, 4, 1, scales, layout.parts_of(sums), header_);
  }
  for (const float sum : layout.floats_of(sums)) EXPECT_EQ(sum, 0.5F);
  for (const std::int64_t sum : layout.integers_of(sums)) EXPECT_EQ(sum, 512);
  EXPECT_EQ(header_.micro_batches, 2U);
  EXPECT_FALSE(header_.non_finite.found());
  for (std::size_t i = 0; i < layout_.tensors.size(); ++i) {
    const bool measured = layout_.tensors[i].offset >= layout.floats();
    EXPECT_EQ(header_.exponents[i], measured ? -1 : model::kNoExponent) << i;
  }
}

TEST_F(AddMicroBatch, OfALossyReductionNamesWhatIsNotFinite) {
  const SumLayout layout = sum_layout(layout_, SumKind::kFloat32);
  runtime::Buffer sums = runtime::Buffer::zeroed(layout.bytes());
  const std::vector<std::int16_t> scales(layout_.tensors.size(), 10);
  values_[place(1, 0)] = std::numeric_limits<float>::infinity();
  add_micro_batch(layout_, values_, 3, 4, 1, scales, layout.parts_of(sums), header_);
  EXPECT_EQ(header_.non_finite, (NonFinite{3, 1}));
}

// Between -1 and 1 in every tensor, for scales of 6.
class RoundedMicroBatch : public AddMicroBatch {
 protected:
  RoundedMicroBatch() {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values_[i] = static_cast<float>(
          2.0 * runtime::random_uniform({.seed = 3}, static_cast<std::uint32_t>(i)) - 1.0);
    }
  }
  std::vector<std::int16_t> added(std::uint32_t micro_batch, std::uint64_t seed,
                                  std::uint64_t step) {
    header_.step = step;
    runtime::Buffer sums = runtime::Buffer::zeroed(sums_layout_.bytes());
    add_micro_batch(layout_, values_, micro_batch, 4, seed, scales_, sums_layout_.parts_of(sums),
                    header_);
    const auto rounded = sums_layout_.rounded_of(sums);
    return {rounded.begin(), rounded.end()};
  }

  const SumLayout sums_layout_ = sum_layout(layout_, SumKind::kInt16);
  const std::vector<std::int16_t> scales_ = std::vector<std::int16_t>(layout_.tensors.size(), 6);
};

TEST_F(RoundedMicroBatch, IsRoundedBySeedStepMicroBatchAndElement) {
  const auto one = added(1, 2, 3);
  EXPECT_EQ(added(1, 2, 3), one);
  EXPECT_NE(added(2, 2, 3), one);
  EXPECT_NE(added(1, 3, 3), one);
  EXPECT_NE(added(1, 2, 4), one);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_LT(std::abs(one[i] - 64.0 * static_cast<double>(values_[i])), 1.0) << i;
  }
  EXPECT_FALSE(header_.flagged);
  EXPECT_NE(header_.exponents[0], model::kNoExponent) << "measured, for the next step";
}

TEST_F(RoundedMicroBatch, IsTheSameInBucketsOfAnySize) {
  const auto whole = added(1, 2, 3);
  const model::Vectors vector{values_.data(), 1, layout_.size};
  const std::uint32_t index = 1;
  std::vector<std::int16_t> sums(whole.size(), 0);
  const auto front = static_cast<std::int64_t>(whole.size());
  for (std::int64_t begin = 0, size = 1; begin < front; begin += size++) {
    const Bucket bucket{begin, std::min(size, front - begin), SumKind::kInt16};
    const auto into = std::span(sums).subspan(static_cast<std::size_t>(begin),
                                              static_cast<std::size_t>(bucket.size));
    add_part({layout_, model::host_memory(), model::host_sums(), {&vector, 1}, {&index, 1}, 2},
             bucket, 4, scales_, {{}, {}, into}, header_);
  }
  EXPECT_EQ(sums, whole);
}

TEST_F(RoundedMicroBatch, FlagsWhatItsScaleDoesNotHold) {
  values_[place(1, 0)] = 2.0F;
  added(1, 2, 3);
  EXPECT_TRUE(header_.flagged);
  EXPECT_EQ(header_.exponents[1], 2);
}

TEST_F(AddMicroBatch, CountsAndMeasuresEachTensor) {
  values_[place(2, 1)] = -6.0f;
  values_[place(3, 0)] = 0.0f;
  add(0, 10);
  add(3, 10);
  EXPECT_EQ(header_.micro_batches, 2u);
  EXPECT_FALSE(header_.flagged);
  EXPECT_EQ(header_.exponents[1], -1);
  EXPECT_EQ(header_.exponents[2], 3);
  EXPECT_EQ(header_.exponents[3], -1);
  EXPECT_EQ(sums_[place(2, 1)], -2 * 6 * 1024);
  EXPECT_EQ(sums_[place(3, 0)], 0);
  EXPECT_EQ(sums_[place(3, 1)], 2 * 256);
}

TEST_F(AddMicroBatch, NamesTheLeastNonFiniteWhateverTheOrder) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  values_[place(5, 0)] = nan;
  add(2, 10);
  EXPECT_EQ(header_.non_finite, (NonFinite{2, 5}));
  values_[place(4, 0)] = nan;
  add(3, 10);
  EXPECT_EQ(header_.non_finite, (NonFinite{2, 5}));
  add(1, 10);
  EXPECT_EQ(header_.non_finite, (NonFinite{1, 4}));
}

TEST_F(AddMicroBatch, FlagsOneOverflowingElement) {
  values_[place(1, 2)] = 0x1p60f;
  add(0, 1);
  EXPECT_TRUE(header_.flagged);
  EXPECT_EQ(header_.exponents[1], 61);
}

}  // namespace
}  // namespace troupe::pipeline
