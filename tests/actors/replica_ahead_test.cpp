// What a replica computes and sends while a step is being reduced, seen by a reducer of one replica
// that gives buckets back at once and headers later.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "tests/actors/rehearsal.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;
using runtime::Context;
using runtime::Message;
using runtime::Script;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

bool is_last_of_iteration(std::uint64_t step) { return step % 4 == 3; }

TEST(ReplicaAhead, ContributesTheNextIterationsFirstStepWhileTheGeneratorsLastIsReduced) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Setting setting;
    setting.seed = seed;
    Rehearsal rehearsal(setting);
    rehearsal.run();
    ASSERT_TRUE(rehearsal.report && !rehearsal.report->error);
    EXPECT_EQ(rehearsal.report->state->iteration, 3u);
    for (std::uint64_t step = 0; step + 1 < rehearsal.steps(); ++step) {
      EXPECT_EQ(rehearsal.went_ahead(step + 1), is_last_of_iteration(step)) << "step " << step;
      // The header says which state the step starts from, so it cannot go ahead.
      EXPECT_TRUE(rehearsal.in_order(rehearsal.answer(step), fmt::format("header {}.0", step + 1)));
    }
    EXPECT_THAT(rehearsal.log, Not(Contains("bucket 12.0"))) << "there is no such iteration";
  }
}

TEST(ReplicaAhead, OverlapIsSeenInTheTrace) {
  Rehearsal rehearsal({});
  rehearsal.run();
  EXPECT_TRUE(rehearsal.overlaps("compute 0 d_real", 4, "reduce 3 g", 3));
  EXPECT_TRUE(rehearsal.overlaps("prepare 1 d_fake", 5, "reduce 0 d_real", 4));
  EXPECT_TRUE(rehearsal.overlaps("prepare 2 g", 6, "reduce 1 d_fake", 5));
  EXPECT_FALSE(rehearsal.overlaps("compute 3 g", 7, "reduce 2 g", 6));
  EXPECT_EQ(rehearsal.spans("compute 0 d_real", 4).size(), 2u) << "4 micro-batches on 2 threads";
  EXPECT_EQ(rehearsal.spans("reduce 0 d_real", 0).size(), 2u) << "the first step is made twice";
}

TEST(ReplicaAhead, WithoutOverlapWaitsForEveryStep) {
  Setting setting;
  setting.overlap = false;
  Rehearsal rehearsal(setting);
  rehearsal.run();
  EXPECT_FALSE(rehearsal.went_ahead(4));
  EXPECT_FALSE(rehearsal.overlaps("prepare 1 d_fake", 5, "reduce 0 d_real", 4));
  EXPECT_TRUE(rehearsal.report && !rehearsal.report->error);
}

TEST(ReplicaAhead, ChangesNoBit) {
  using enum model::SlotKind;
  for (const auto& schedule :
       {std::vector{kDReal, kDFake, kG, kG}, {kDFake, kDReal}, {kG, kDReal, kDFake}, {kDReal}}) {
    Setting setting;
    setting.schedule = schedule;
    Rehearsal ahead(setting);
    ahead.run();
    setting.overlap = false;
    Rehearsal waiting(setting);
    waiting.run();
    ASSERT_TRUE(ahead.report && !ahead.report->error);
    ASSERT_TRUE(waiting.report && !waiting.report->error);
    EXPECT_EQ(ahead.hashes.size(), ahead.steps());
    EXPECT_EQ(ahead.hashes, waiting.hashes);
    EXPECT_EQ(pipeline::hash_of_state(*ahead.report->state),
              pipeline::hash_of_state(*waiting.report->state));
    EXPECT_NE(pipeline::hash_of_state(*ahead.report->state),
              pipeline::hash_of_state(*ahead.initial()));
  }
}

TEST(ReplicaAhead, PreparesAcrossTheBoundaryOfIterations) {
  using enum model::SlotKind;
  Setting setting;
  setting.schedule = {kDFake, kDReal};
  Rehearsal rehearsal(setting);
  rehearsal.run();
  EXPECT_TRUE(rehearsal.overlaps("prepare 0 d_fake", 2, "reduce 1 d_real", 1));
  EXPECT_FALSE(rehearsal.went_ahead(2)) << "it reads the discriminator";
}

// A first step is always flagged and asked for again, here when its successor is out already.
TEST(ReplicaAhead, StepIsRetriedWithItsSuccessorOut) {
  Rehearsal rehearsal({});
  rehearsal.run();
  EXPECT_TRUE(rehearsal.in_order("bucket 4.0", "bucket 3.1"));
  EXPECT_TRUE(rehearsal.in_order("bucket 3.1", "answer 3.1"));
  EXPECT_TRUE(rehearsal.in_order("answer 3.1", "header 4.0"));
  EXPECT_EQ(std::count(rehearsal.log.begin(), rehearsal.log.end(), "bucket 4.0"), 1);
  EXPECT_TRUE(rehearsal.report && !rehearsal.report->error);
}

TEST(ReplicaAhead, StopAbandonsBothStepsAndReportsTheLastCommittedState) {
  Rehearsal rehearsal({});
  rehearsal.on_header = [](Context&, const pipeline::StepHeader& header) {
    return header.step != 7;
  };
  rehearsal.on_line = [&](Context& context, const std::string& line) {
    if (line == "bucket 8.0") rehearsal.stop(context);
  };
  rehearsal.run();
  ASSERT_TRUE(rehearsal.report && !rehearsal.report->error);
  EXPECT_EQ(rehearsal.report->state->step(4), 7u);
  EXPECT_EQ(pipeline::hash_of_state(*rehearsal.report->state), rehearsal.hashes.at(7));
  EXPECT_EQ(rehearsal.report->last_step->step, 6u);
  EXPECT_THAT(rehearsal.log, Not(Contains("header 8.0")));
}

TEST(ReplicaAhead, NotANumberEndsTheRunAlthoughTheNextStepIsComputed) {
  Rehearsal rehearsal({});
  rehearsal.on_header = [](Context&, pipeline::StepHeader& header) {
    if (header.step == 7) header.non_finite = {2, 0};
    return true;
  };
  rehearsal.run();
  EXPECT_TRUE(rehearsal.went_ahead(8));
  ASSERT_TRUE(rehearsal.report && rehearsal.report->error);
  EXPECT_EQ(rehearsal.report->error->kind, runtime::ErrorKind::kDiverged);
  EXPECT_THAT(rehearsal.report->error->message, HasSubstr("micro-batch 2"));
  EXPECT_EQ(rehearsal.report->state->step(4), 7u);
  EXPECT_THAT(rehearsal.log, Not(Contains("header 8.0")));
}

TEST(ReplicaAhead, SumBeyondItsFormatEndsTheRunBeforeItIsApplied) {
  Setting setting;
  setting.lossy = pipeline::ReductionFormat::kBf16;
  Rehearsal rehearsal(setting);
  rehearsal.on_sums = [](const BucketMessage& bucket, Buffer& sums) {
    if (bucket.kind != pipeline::SumKind::kFloat32 || bucket.step != 5) return;
    sums.mutable_as<float>()[0] = std::numeric_limits<float>::infinity();
  };
  rehearsal.run();
  ASSERT_TRUE(rehearsal.report && rehearsal.report->error);
  EXPECT_EQ(rehearsal.report->error->kind, runtime::ErrorKind::kDiverged);
  EXPECT_THAT(rehearsal.report->error->message, HasSubstr("step 5: the sum of discriminator/"));
  EXPECT_EQ(rehearsal.report->state->step(4), 5u);
  EXPECT_EQ(rehearsal.report->last_step->step, 4u);
}

// An iteration's events are not needed any more when its last step is computed. Then there are
// those of the next one, one more that it could be to compare, and what the link holds.
TEST(ReplicaAhead, OneLoaderCreditIsEnoughToGoAheadAndNoMoreIsLoadedThanAnIterationAhead) {
  Setting setting;
  setting.batch_credits = 1;
  Rehearsal rehearsal(setting);
  std::int64_t sent_before_answer = 0;
  rehearsal.on_line = [&](Context&, const std::string& line) {
    if (line == "answer 3.1") sent_before_answer = rehearsal.batches_sent;
  };
  rehearsal.run();
  EXPECT_TRUE(rehearsal.went_ahead(4));
  EXPECT_EQ(sent_before_answer, 4 + 4 + 1 + 1);
  EXPECT_TRUE(rehearsal.report && !rehearsal.report->error);
}

TEST(ReplicaAhead, LateMicroBatchesDelayTheNextIterationAndNothingElse) {
  Rehearsal rehearsal({});
  bool reduced = false;
  rehearsal.may_load = [&](std::uint64_t iteration) { return iteration == 0 || reduced; };
  rehearsal.on_line = [&](Context&, const std::string& line) { reduced |= line == "answer 3.1"; };
  rehearsal.run();
  EXPECT_FALSE(rehearsal.went_ahead(4));
  EXPECT_TRUE(rehearsal.went_ahead(8));
  EXPECT_TRUE(rehearsal.report && !rehearsal.report->error);
}

TEST(ReplicaAhead, WithoutMicroBatchesGoesAheadUntilTheEndAndNotBeyond) {
  Setting setting;
  setting.idle = true;
  Rehearsal rehearsal(setting);
  rehearsal.on_header = [&](Context&, pipeline::StepHeader& header) {
    header.micro_batches = rehearsal.options().micro_batches;
    header.events = std::uint64_t{header.micro_batches} * rehearsal.options().micro_batch;
    return true;
  };
  rehearsal.run();
  ASSERT_TRUE(rehearsal.report && !rehearsal.report->error);
  EXPECT_EQ(rehearsal.report->state->iteration, 3u);
  EXPECT_TRUE(rehearsal.went_ahead(4));
  EXPECT_THAT(rehearsal.log, Not(Contains("bucket 12.0")));
}

// A replica computes no more than two steps, so a sum of any other is a fault of another node.
TEST(ReplicaAhead, SumsAndHeadersOfOtherStepsAreRefused) {
  const auto refusal = [](const Message& sent) {
    const auto* bucket = sent.as<BucketMessage>();
    const auto* header = sent.as<HeaderMessage>();
    Rehearsal rehearsal({});
    rehearsal.on_header = [&](Context& context, const pipeline::StepHeader& own) {
      if (own.step != 7) return true;
      if (bucket != nullptr) {
        Buffer sums = Buffer::zeroed(8);
        context.send("reduced", Message::of(BucketMessage(*bucket), {std::move(sums)}));
      } else {
        pipeline::StepHeader other = own;
        other.step = header->header.step;
        other.attempt = header->header.attempt;
        context.send("reduced", Message::of(HeaderMessage{std::move(other)}));
      }
      return false;
    };
    rehearsal.run();
    if (!rehearsal.end.error) return std::string("none");
    EXPECT_EQ(rehearsal.end.error->kind, runtime::ErrorKind::kLostPeers);
    return rehearsal.end.error->message;
  };
  const auto bucket = [](std::uint64_t step, std::uint32_t attempt, std::int64_t end) {
    return Message::of(BucketMessage{step, attempt, 0, end - 1, end});
  };
  const auto header = [](std::uint64_t step, std::uint32_t attempt) {
    HeaderMessage body;
    body.header.step = step;
    body.header.attempt = attempt;
    return Message::of(std::move(body));
  };
  EXPECT_THAT(refusal(bucket(9, 0, 1)),
              HasSubstr("elements 0 to 1 of step 9 attempt 0 while step"));
  EXPECT_THAT(refusal(bucket(6, 0, 1)), HasSubstr("step 6 attempt 0 while step 7 is next"));
  EXPECT_THAT(refusal(bucket(7, 1, 1)), HasSubstr("step 7 attempt 1"));
  EXPECT_THAT(refusal(bucket(7, 0, 1 << 20)), HasSubstr("elements 1048575 to 1048576 of step 7"));
  EXPECT_THAT(refusal(bucket(7, 0, 0)), HasSubstr("elements -1 to 0 of step 7"));
  EXPECT_THAT(refusal(header(8, 0)), HasSubstr("the header of step 8 attempt 0 while step 7"));
  EXPECT_THAT(refusal(header(7, 1)), HasSubstr("the header of step 7 attempt 1"));
}

}  // namespace
}  // namespace troupe::actors
