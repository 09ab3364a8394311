// One member's part of the ring, without a stage: what it sends, and what it refuses.

#include "actors/ring_sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/steps/ring_schedule.h"
#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;
using runtime::Message;
using testing::ElementsAre;
using testing::HasSubstr;

using Event = std::function<runtime::Result<RingOutcome>(RingSum&)>;

Event own_bucket(std::uint32_t number, std::int64_t end = 4, const char* who = "replica.0") {
  return [=](RingSum& sum) {
    const BucketMessage body{0, 0, number, 0, end, pipeline::SumKind::kInt64, kFirstView};
    return sum.contribute(body, Buffer::zeroed(static_cast<std::size_t>(end) * 8), who, {});
  };
}

Event own_header(std::size_t tensors = 2, const char* who = "replica.0", std::uint64_t step = 0) {
  return [=](RingSum& sum) {
    pipeline::StepHeader header;
    header.step = step;
    header.exponents.resize(tensors);
    header.micro_batches = 1;
    return sum.contribute(header, who, {});
  };
}

Event ring_bucket(std::uint64_t step, std::uint32_t number, bool summed, std::int64_t end = 4) {
  return [=](RingSum& sum) {
    Message message = Message::of(
        RingBucket{
            {step, 0, number, 0, end, pipeline::SumKind::kInt64, kFirstView}, summed, std::nullopt},
        {Buffer::zeroed(static_cast<std::size_t>(end) * 8)});
    return sum.take_ring(*message.as<RingBucket>(), message, "reducer", {});
  };
}

Event ring_header(std::size_t tensors, bool combined, std::uint32_t micro_batches = 1,
                  std::uint64_t events = 0, std::uint64_t step = 0) {
  return [=](RingSum& sum) {
    RingHeader body;
    body.header.step = step;
    body.header.events = events;
    body.header.exponents.resize(tensors);
    body.header.micro_batches = micro_batches;
    body.combined = combined;
    Message message = Message::of(std::move(body));
    return sum.take_ring(*message.as<RingHeader>(), message, "reducer", {});
  };
}

// At `position` of a ring of nine in rows of three.
RingSum one_of_nine(std::uint32_t position) {
  RingSumOptions options;
  options.member = position;
  options.micro_batches = 9;
  options.events = 0;
  RingSum sum(options);
  pipeline::View view = *view_of(9, 9);
  view.rows = {0, 3, 6};
  sum.enter(view);
  return sum;
}

// At `position` of a ring of three, in iterations of two micro-batches without events.
RingSum one_of_three(std::uint32_t position, std::uint32_t replicas = 1,
                     std::optional<pipeline::ReductionFormat> lossy = std::nullopt) {
  RingSumOptions options;
  options.replicas = replicas;
  options.member = position;
  options.micro_batches = 2;
  options.events = 0;
  options.lossy = lossy;
  options.slot_floats = {lossy ? 256U : 0U};
  RingSum sum(options);
  sum.enter(*view_of(3, 2));
  return sum;
}

TEST(RingSum, WhatFitsNoStepNoBucketOrNoTurnIsRefused) {
  ASSERT_TRUE(pipeline::BucketRoutes(3).role(0, 1).begins());
  ASSERT_TRUE(pipeline::BucketRoutes(3).role(0, 0).completes());
  struct Case {
    const char* situation;
    std::uint32_t position;
    std::vector<Event> events;  // the last one is refused
    const char* refusal;
    std::uint32_t replicas = 1;
  };
  const std::vector<Case> cases{
      {"part for the one that begins", 1, {ring_bucket(0, 0, false)}, "bucket 0 out of its order"},
      {"part that came already",
       2,
       {ring_bucket(0, 0, false), ring_bucket(0, 0, false)},
       "bucket 0 out of its order"},
      {"sum before the own part has gone into it",
       2,
       {ring_bucket(0, 0, true)},
       "bucket 0 out of its order"},
      {"sum that came already",
       1,
       {own_bucket(0), ring_bucket(0, 0, true), ring_bucket(0, 0, true)},
       "bucket 0 out of its order"},
      {"sum for its home",
       0,
       {own_bucket(0), ring_bucket(0, 0, false), ring_bucket(0, 0, true)},
       "bucket 0 out of its order"},
      {"bucket that no replica here has",
       1,
       {own_bucket(0), own_header(), ring_bucket(0, 4, false)},
       "bucket 4 of 1"},
      {"bucket cut otherwise",
       0,
       {own_bucket(0), ring_bucket(0, 0, false, 3)},
       "bucket 0 cut otherwise"},
      {"own bucket cut otherwise",
       0,
       {ring_bucket(0, 0, false, 3), own_bucket(0)},
       "bucket 0 cut otherwise"},
      {"own bucket twice", 0, {own_bucket(0), own_bucket(0)}, "bucket 0 twice"},
      {"last own header, while a replica's bucket is missing",
       0,
       {own_bucket(0), own_bucket(1), own_header(), own_bucket(0, 4, "replica.1"),
        own_header(2, "replica.1")},
       "the last header, while buckets are missing",
       2},
      {"own bucket cut otherwise than another replica's",
       0,
       {own_bucket(0), own_bucket(0, 3, "replica.1")},
       "bucket 0 cut otherwise",
       2},
      {"own header of other tensors than another replica's",
       0,
       {own_header(), own_header(3, "replica.1")},
       "3 tensors",
       2},
      {"header for the one that begins",
       1,
       {own_header(), ring_header(2, false)},
       "a header out of its order"},
      {"combined header for its home",
       0,
       {own_header(), ring_header(2, true)},
       "a header out of its order"},
      {"combined header before the own one has gone into it",
       1,
       {ring_header(2, true, 2)},
       "a header out of its order"},
      {"combined header that came already",
       1,
       {own_bucket(0), own_header(), ring_header(2, true, 2), ring_header(2, true, 2)},
       "a header out of its order"},
      {"own header twice", 1, {own_header(), own_header()}, "a header twice"},
      {"last header of a step before the one in front of it is summed",
       1,
       {own_bucket(0), own_header(2, "replica.0", 1), ring_header(2, true, 2, 0, 1)},
       "the last header of step 1"},
      {"header of other tensors",
       0,
       {own_header(), ring_header(3, false)},
       "a header of 3 tensors beside one of 2"},
      {"combined header of other tensors",
       1,
       {own_header(), ring_header(3, true, 2)},
       "a header of 3 tensors beside one of 2"},
      {"combined header of other events",
       1,
       {own_header(), ring_header(2, true, 2, 1)},
       "the last of 2 micro-batches of 1 events"},
      {"headers of more micro-batches than an iteration has",
       0,
       {own_header(), ring_header(2, false, 2)},
       "the last of 3 micro-batches of 0 events, where an iteration has 2 of 0"},
      {"step after the next", 1, {own_bucket(0), ring_bucket(2, 1, false)}, "step 2 attempt 0"},
      {"step after two that are open",
       1,
       {own_bucket(0), ring_bucket(1, 1, false), ring_bucket(2, 1, false)},
       "step 2 attempt 0"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.situation);
    RingSum sum = one_of_three(each.position, each.replicas);
    runtime::Result<RingOutcome> outcome = RingOutcome();
    for (const Event& event : each.events) {
      ASSERT_TRUE(outcome.ok()) << outcome.error().message;
      outcome = event(sum);
    }
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().kind, runtime::ErrorKind::kLostPeers);
    EXPECT_THAT(outcome.error().message, HasSubstr(std::string("contributed ") + each.refusal));
  }
}

TEST(RingSum, NewViewBeginsWithTheFirstAttempt) {
  RingSumOptions options;
  options.events = 0;
  RingSum sum(options);
  sum.enter(*view_of(1, 1));
  const auto begins = [&](std::uint32_t attempt) {
    const BucketMessage body{0, attempt, 0, 0, 4, pipeline::SumKind::kInt64, kFirstView};
    return sum.contribute(body, Buffer::zeroed(32), "replica.0", {}).ok();
  };
  ASSERT_TRUE(begins(0));
  pipeline::StepHeader header;
  header.exponents.resize(2);
  header.micro_batches = 1;
  header.flagged = true;
  ASSERT_TRUE(sum.contribute(header, "replica.0", {})->ended);
  EXPECT_FALSE(begins(0)) << "it is made again";
  for (int view = 0; view < 2; ++view) {
    sum.enter(*view_of(1, 1));
    EXPECT_TRUE(begins(0));
  }
}

// A remainder of rounding is of sums that these members have made.
TEST(RingSum, NewViewBeginsWithoutRemaindersOfRounding) {
  constexpr std::int64_t kElements = 256;
  constexpr auto kFormat = pipeline::ReductionFormat::kBf16;
  RingSum sum = one_of_three(1, 1, kFormat);
  const auto sent = [&](std::uint64_t step) {
    Buffer part = Buffer::allocate(kElements * sizeof(float));
    std::ranges::fill(part.mutable_as<float>(), 1.003f);
    const BucketMessage body{step, 0, 0, 0, kElements, pipeline::SumKind::kFloat32, kFirstView};
    const Buffer wire = sum.contribute(body, part, "replica.0", {})->sendings.at(0).sums;
    Message message = Message::of(RingBucket{body, true, kFormat}, {wire});
    CHECK(sum.take_ring(*message.as<RingBucket>(), message, "reducer", {}).ok());
    CHECK(own_header(2, "replica.0", step)(sum).ok());
    CHECK(ring_header(2, true, 2, 0, step)(sum)->ended.has_value());
    const auto bytes = wire.as<std::uint16_t>();
    return std::vector<std::uint16_t>(bytes.begin(), bytes.end());
  };
  const auto first = sent(0);
  sum.enter(*view_of(3, 2));
  EXPECT_EQ(sent(1), first);
  EXPECT_NE(sent(2), first);
}

pipeline::SumKind kind_of(std::optional<pipeline::ReductionFormat> format) {
  return format ? pipeline::SumKind::kFloat32 : pipeline::SumKind::kInt64;
}

TEST(RingSum, BucketInAnotherFormatIsRefusedAndItsSenderNamed) {
  using Format = std::optional<pipeline::ReductionFormat>;
  using enum pipeline::ReductionFormat;
  constexpr std::size_t kElements = 256;
  const Format all[] = {std::nullopt, kFp32, kBf16, kInt8};
  for (const Format own : all) {
    for (const Format other : all) {
      if (own == other) continue;
      for (const bool own_first : {true, false}) {
        RingSum sum = one_of_three(0, 1, own);
        const auto contribute = [&] {
          return sum.contribute(BucketMessage{0, 0, 0, 0, kElements, kind_of(own), kFirstView},
                                Buffer::zeroed(kElements * (own ? 4 : 8)), "somebody", {});
        };
        const auto hear = [&] {
          const std::size_t bytes =
              other ? pipeline::encoded_bytes(*other, kElements) : kElements * 8;
          Message message = Message::of(
              RingBucket{{0, 0, 0, 0, kElements, kind_of(other), kFirstView}, false, other},
              {Buffer::zeroed(bytes)});
          return sum.take_ring(*message.as<RingBucket>(), message, "reducer", {});
        };
        runtime::Result<RingOutcome> outcome = own_first ? contribute() : hear();
        if (outcome.ok()) outcome = own_first ? hear() : contribute();
        ASSERT_FALSE(outcome.ok());
        EXPECT_EQ(outcome.error().kind, runtime::ErrorKind::kLostPeers);
        EXPECT_THAT(outcome.error().message, HasSubstr("contributed bucket 0 "));
      }
    }
  }
}

// Which buckets have set out from here.
std::vector<std::uint32_t> set_out(const runtime::Result<RingOutcome>& outcome) {
  std::vector<std::uint32_t> numbers;
  for (const auto& sending : outcome->sendings) {
    const auto* bucket = std::get_if<RingBucket>(&sending.body);
    if (bucket != nullptr && !bucket->summed) numbers.push_back(bucket->bucket.bucket);
  }
  return numbers;
}

TEST(RingSum, BucketsBeyondWhatMayBeUnderWaySetOutAsSumsComeBack) {
  // Three fifths of what may be under way. Buckets 0, 3 and 6 begin at position 1.
  constexpr std::int64_t kElements = 3 * static_cast<std::int64_t>(kMostUnderWay) / 8 / 5;
  RingSum sum = one_of_three(1);
  EXPECT_THAT(set_out(own_bucket(0, kElements)(sum)), ElementsAre(0U));
  EXPECT_THAT(set_out(own_bucket(3, kElements)(sum)), ElementsAre());
  EXPECT_THAT(set_out(own_bucket(6, kElements)(sum)), ElementsAre());
  EXPECT_THAT(set_out(ring_bucket(0, 0, true, kElements)(sum)), ElementsAre(3U));
  EXPECT_THAT(set_out(ring_bucket(0, 3, true, kElements)(sum)), ElementsAre(6U));
}

// In a ring of rings a bucket begins in each row. Were a later one to go first here and another one
// elsewhere, they would wait for each other.
TEST(RingSum, SmallBucketDoesNotPassALargeOneThatWaits) {
  constexpr std::int64_t kLarge = 3 * static_cast<std::int64_t>(kMostUnderWay) / 8 / 5;
  RingSum sum = one_of_three(1);
  EXPECT_THAT(set_out(own_bucket(0, kLarge)(sum)), ElementsAre(0U));
  EXPECT_THAT(set_out(own_bucket(3, kLarge)(sum)), ElementsAre());
  EXPECT_THAT(set_out(own_bucket(6, 4)(sum)), ElementsAre());
  EXPECT_THAT(set_out(ring_bucket(0, 0, true, kLarge)(sum)), ElementsAre(3U, 6U));
}

// By position: where its part of bucket 0 goes.
std::vector<std::uint32_t> destinations(const runtime::Result<RingOutcome>& outcome) {
  std::vector<std::uint32_t> all;
  if (!outcome.ok()) return {99};
  for (const auto& sending : outcome->sendings) {
    const bool goes_round = std::holds_alternative<RingBucket>(sending.body) ||
                            std::holds_alternative<RingHeader>(sending.body);
    if (goes_round) all.push_back(sending.to);
  }
  return all;
}

Event from(const char* reducer, bool header, bool summed) {
  return [=](RingSum& sum) {
    RingHeader told;
    told.header.exponents.resize(2);
    told.header.micro_batches = 3;
    told.combined = summed;
    const RingBucket bucket{
        {0, 0, 0, 0, 4, pipeline::SumKind::kInt64, kFirstView}, summed, std::nullopt};
    Message message = header ? Message::of(std::move(told))
                             : Message::of(RingBucket(bucket), {Buffer::zeroed(32)});
    return header ? sum.take_ring(*message.as<RingHeader>(), message, reducer, {})
                  : sum.take_ring(*message.as<RingBucket>(), message, reducer, {});
  };
}

// A neighbour of another row may have ended an attempt whose sums are on their way here, and no
// more than one.
TEST(RingSum, InRowsOthersMayBeOneAttemptAhead) {
  const auto begins = [](std::uint64_t step, std::uint32_t attempt) {
    return [=](RingSum& sum) {
      Message message = Message::of(
          RingBucket{{step, attempt, 0, 0, 4, pipeline::SumKind::kInt64, kFirstView}, false, {}},
          {Buffer::zeroed(32)});
      return sum.take_ring(*message.as<RingBucket>(), message, "reducer.3", {});
    };
  };
  for (const auto& [step, attempt] : {std::pair{0U, 1U}, {1U, 0U}, {2U, 0U}}) {
    RingSum sum = one_of_nine(6);
    EXPECT_TRUE(begins(step, attempt)(sum).ok());
    const bool is_further_for_one_ring = step + attempt > 1 || attempt > 0;
    RingSum in_one_ring = one_of_three(0);
    EXPECT_EQ(begins(step, attempt)(in_one_ring).ok(), !is_further_for_one_ring);
  }
  for (const auto& [step, attempt] : {std::pair{0U, 2U}, {1U, 1U}, {3U, 0U}}) {
    RingSum sum = one_of_nine(6);
    EXPECT_FALSE(begins(step, attempt)(sum).ok());
  }
  RingSum sum = one_of_nine(6);
  for (const std::uint64_t step : {0, 1, 2}) EXPECT_TRUE(begins(step, 0)(sum).ok());
  EXPECT_FALSE(begins(0, 1)(sum).ok());  // a fourth attempt
}

// Position 0 is the home of bucket 0 and the last of its row; 3 and 6 are those of the others.
TEST(RingSum, InRowsBothRingsOfAMemberAreWaitedFor) {
  for (const bool header : {false, true}) {
    const auto own = [&](RingSum& sum) {
      const auto outcome = own_bucket(0)(sum);
      return header ? own_header()(sum) : outcome;
    };
    RingSum home = one_of_nine(0);
    EXPECT_THAT(destinations(own(home)), ElementsAre());
    EXPECT_THAT(destinations(from("reducer.2", header, false)(home)), ElementsAre());
    EXPECT_FALSE(from("reducer.2", header, false)(home).ok());  // a second time
    EXPECT_THAT(destinations(from("reducer.6", header, false)(home)), ElementsAre(3, 1));
    EXPECT_FALSE(from("reducer.3", header, false)(home).ok());  // a third part

    RingSum first = one_of_nine(3);  // of the column
    EXPECT_THAT(destinations(from("reducer.5", header, false)(first)), ElementsAre());
    EXPECT_THAT(destinations(own(first)), ElementsAre(6));
    EXPECT_THAT(destinations(from("reducer.0", header, true)(first)), ElementsAre(6, 4));

    RingSum second = one_of_nine(6);
    EXPECT_THAT(destinations(own(second)), ElementsAre());
    EXPECT_THAT(destinations(from("reducer.3", header, false)(second)), ElementsAre());
    EXPECT_THAT(destinations(from("reducer.8", header, false)(second)), ElementsAre(0));
    EXPECT_THAT(destinations(from("reducer.3", header, true)(second)), ElementsAre(7));

    RingSum aside = one_of_nine(4);
    EXPECT_THAT(destinations(own(aside)), ElementsAre(5));
    EXPECT_THAT(destinations(from("reducer.3", header, true)(aside)), ElementsAre(5));
    RingSum last = one_of_nine(5);
    EXPECT_THAT(destinations(own(last)), ElementsAre());
    EXPECT_THAT(destinations(from("reducer.4", header, false)(last)), ElementsAre(3));
    EXPECT_THAT(destinations(from("reducer.4", header, true)(last)), ElementsAre());
  }
}

}  // namespace
}  // namespace troupe::actors
