// Rings of reducers: what the replicas get of every step, bit by bit, in an exact reduction and in
// each lossy format.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/reducer.h"
#include "pipeline/steps/ring_rows.h"
#include "pipeline/steps/ring_schedule.h"
#include "runtime/base/random.h"
#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using pipeline::ReductionFormat;
using runtime::Buffer;
using runtime::Context;
using runtime::Message;
using runtime::NodeEnd;
using runtime::Script;
using Format = std::optional<ReductionFormat>;

const Format kFormats[] = {std::nullopt, ReductionFormat::kFp32, ReductionFormat::kBf16,
                           ReductionFormat::kInt8};
constexpr std::int64_t kSegment = 4 << 10;

// What all contributors of a ring agree upon. Steps of two slots take turns, of other sizes.
struct Drama {
  Format format = ReductionFormat::kInt8;
  std::uint32_t members = 2;
  std::uint32_t replicas = 1;  // of each member
  bool repeats = false;        // some steps are flagged, and made again
  bool ahead = true;           // buckets of a step are out before the step before it is summed
  std::uint64_t steps = 6;
  std::vector<std::uint32_t> rows{};

  static constexpr std::size_t kSlotFloats[] = {3000, 700};

  std::uint32_t all() const { return members * replicas; }
  bool repeated(std::uint64_t step) const { return repeats && step % 3 != 1; }
  std::vector<std::size_t> slot_floats() const {
    if (!format) return {0, 0};
    return {std::begin(kSlotFloats), std::end(kSlotFloats)};
  }
  pipeline::SumLayout layout(std::uint64_t step) const {
    const auto floats = static_cast<std::int64_t>(kSlotFloats[step % 2]);
    if (!format) return {floats + 5, {}};
    return {floats + 5, {floats, pipeline::SumKind::kFloat32}};
  }
  std::vector<pipeline::Bucket> buckets(std::uint64_t step) const {
    return pipeline::make_buckets(layout(step), kSegment, members);
  }
  // An integer of a replica's part. An attempt that is made again has others.
  std::int64_t integer(std::uint64_t step, std::uint32_t attempt, std::uint32_t replica,
                       std::size_t place) const {
    const std::uint64_t given_up = repeated(step) && attempt == 0 ? 1 : 0;
    const std::uint64_t drawn = runtime::mix64(runtime::mix64(2 * step + given_up) ^ replica);
    return static_cast<std::int64_t>(runtime::mix64(drawn ^ place)) >> 8;
  }
  // One replica's part: in every block of floats one is much larger than the others.
  Buffer part(std::uint64_t step, std::uint32_t attempt, std::uint32_t replica) const {
    const pipeline::SumLayout sums = layout(step);
    Buffer part = Buffer::zeroed(sums.bytes());
    const pipeline::MutableSums parts = sums.parts_of(part);
    runtime::fill_normal({.seed = step + 1, .micro_batch = replica}, parts.floats.data(),
                         static_cast<std::uint32_t>(parts.floats.size()));
    for (std::size_t i = 0; i < parts.floats.size(); i += 100) parts.floats[i] *= 50.0F;
    for (std::size_t i = 0; i < parts.integers.size(); ++i) {
      parts.integers[i] = integer(step, attempt, replica, i);
    }
    return part;
  }
};

// By step: what the last attempt at it gave.
using Sums = std::map<std::uint64_t, Buffer>;

bool same(const Buffer& a, const Buffer& b) { return std::ranges::equal(a.bytes(), b.bytes()); }

bool same(const Sums& a, const Sums& b) {
  return std::ranges::equal(a, b, [](const auto& one, const auto& other) {
    return one.first == other.first && same(one.second, other.second);
  });
}

// The same without actors, one bucket after another.
class Reference {
 public:
  explicit Reference(const Drama& drama) : drama_(drama) {
    for (std::uint32_t i = 0; i < drama.members; ++i) {
      members_.emplace_back(drama.format, drama.slot_floats());
    }
  }

  Sums sums() {
    Sums all;
    for (std::uint64_t step = 0; step < drama_.steps; ++step) {
      if (drama_.repeated(step)) make(step, 0, false);
      all[step] = make(step, drama_.repeated(step) ? 1 : 0, true);
    }
    return all;
  }

 private:
  Buffer own(std::uint64_t step, std::uint32_t attempt, std::uint32_t member,
             const pipeline::Bucket& bucket) const {
    std::vector<Buffer> parts;
    for (std::uint32_t i = 0; i < drama_.replicas; ++i) {
      parts.push_back(drama_.part(step, attempt, member * drama_.replicas + i)
                          .slice(drama_.layout(step).offset(bucket.offset), bucket.bytes()));
    }
    return pipeline::BucketArithmetic::sum_of(parts, bucket.kind);
  }

  Buffer make(std::uint64_t step, std::uint32_t attempt, bool applied) {
    const auto slot = static_cast<std::uint32_t>(step % 2);
    const pipeline::SumLayout layout = drama_.layout(step);
    Buffer sums = Buffer::zeroed(layout.bytes());
    std::uint32_t number = 0;
    for (const pipeline::Bucket& bucket : drama_.buckets(step)) {
      const pipeline::BucketRoutes routes(drama_.members, drama_.rows);
      const auto role = [&](std::uint32_t at) { return routes.role(number, at); };
      // What a member sends, or has in the end.
      const std::function<Buffer(std::uint32_t)> wire = [&](std::uint32_t at) {
        std::vector<Buffer> parts;
        for (std::uint32_t i = 0; i < drama_.members; ++i) {
          if (role(i).part_to == at) parts.push_back(wire(i));
        }
        return members_[at].add(slot, bucket, parts, own(step, attempt, at, bucket));
      };
      const std::uint32_t home = routes.home_of(number);
      const Buffer sum = members_[home].sum_from(bucket, wire(home));
      ++number;
      std::ranges::copy(sum.bytes(), sums.mutable_data() + layout.offset(bucket.offset));
    }
    for (auto& member : members_) member.close(slot, applied);
    return sums;
  }

  const Drama drama_;
  std::vector<pipeline::BucketArithmetic> members_;
};

// Plays a replica.
class Contributor final : public runtime::Actor {
 public:
  Contributor(const Drama& drama, std::uint32_t number, Sums& got)
      : drama_(drama), number_(number), got_(got) {}

  void receive(Context& context, Message message) override {
    if (message.as<ViewMessage>() != nullptr) {
      contribute(0, 0);
      say_header(0);
      if (drama_.ahead) contribute(1, 0);
    } else if (const auto* bucket = message.as<BucketMessage>()) {
      const pipeline::SumLayout layout = drama_.layout(bucket->step);
      auto [sums, fresh] = got_.try_emplace(bucket->step);
      if (fresh) sums->second = Buffer::zeroed(layout.bytes());
      std::ranges::copy(message.payloads().front().bytes(),
                        sums->second.mutable_data() + layout.offset(bucket->begin));
    } else if (const auto* header = message.as<HeaderMessage>()) {
      EXPECT_EQ(header->header.step, step_);
      EXPECT_EQ(header->header.exponents.at(0), static_cast<int>(drama_.all()) - 1);
      go_on(context, header->header.flagged);
    }
    flush(context);
  }

  void credit_returned(Context& context, std::string_view) override { flush(context); }

 private:
  void contribute(std::uint64_t step, std::uint32_t attempt) {
    if (step >= drama_.steps) return;
    const Buffer part = drama_.part(step, attempt, number_);
    std::uint32_t number = 0;
    for (const pipeline::Bucket& bucket : drama_.buckets(step)) {
      const BucketMessage body{step,         attempt,     number++,  bucket.offset,
                               bucket.end(), bucket.kind, kFirstView};
      out_.push_back(
          Message::of(BucketMessage(body),
                      {part.slice(drama_.layout(step).offset(bucket.offset), bucket.bytes())}));
    }
  }

  void say_header(std::uint32_t attempt) {
    HeaderMessage message;
    message.view = kFirstView;
    message.header.step = step_;
    message.header.attempt = attempt;
    message.header.exponents = {static_cast<std::int16_t>(number_)};
    message.header.flagged = attempt == 0 && drama_.repeated(step_) && number_ == 0;
    message.header.micro_batches = 1;
    out_.push_back(Message::of(std::move(message)));
  }

  void go_on(Context& context, bool flagged) {
    if (flagged) {
      contribute(step_, 1);
      return say_header(1);
    }
    if (++step_ == drama_.steps) {
      context.send_control("coordinator", Message::of(LastStateDone{}));
      return;
    }
    if (!drama_.ahead) contribute(step_, 0);
    say_header(0);
    if (drama_.ahead) contribute(step_ + 1, 0);
  }

  void flush(Context& context) {
    while (!out_.empty() && context.send("contributions", out_.front())) out_.pop_front();
  }

  const Drama drama_;
  const std::uint32_t number_;
  Sums& got_;
  std::uint64_t step_ = 0;
  std::deque<Message> out_;
};

std::string numbered(const char* kind, std::uint32_t number) {
  return fmt::format("{}.{}", kind, number);
}

ReducerOptions reducer_options(const Drama& drama, std::uint32_t member) {
  ReducerOptions options;
  options.first_replica = member * drama.replicas;
  options.replicas = drama.replicas;
  options.micro_batches = drama.all();
  options.events = 0;
  options.member = member;
  options.lossy = drama.format;
  options.slot_floats = drama.slot_floats();
  return options;
}

// What each replica has got.
std::vector<Sums> play_ring(const Drama& drama, std::uint64_t seed) {
  std::vector<Sums> got(drama.all());
  Play play;
  Script root;
  root.start = [&drama](Context& context) {
    pipeline::View told = *view_of(drama.members, drama.all(), drama.replicas);
    told.rows = drama.rows;
    const auto view = std::make_shared<const pipeline::View>(std::move(told));
    for (std::uint32_t member = 0; member < drama.members; ++member) {
      context.send_control(numbered("reducer", member), Message::of(ViewMessage{view}));
    }
  };
  root.receive = [done = 0U, all = drama.all()](Context& context, const Message&) mutable {
    if (++done == all) context.finish();
  };
  play.actor("coordinator", root);
  for (std::uint32_t member = 0; member < drama.members; ++member) {
    play.actor(numbered("reducer", member), [options = reducer_options(drama, member)] {
      return std::make_unique<Reducer>(options);
    });
  }
  for (std::uint32_t number = 0; number < drama.all(); ++number) {
    play.actor(numbered("replica", number), [&drama, number, &got] {
      return std::make_unique<Contributor>(drama, number, got[number]);
    });
    const std::string reducer = numbered("reducer", number / drama.replicas);
    play.link(numbered("replica", number), "contributions", reducer, "contributions");
    play.link(reducer, numbered("reduced", number), numbered("replica", number), "reduced",
              runtime::Lane::kData, 8, 1);
  }
  play.link_reducers(drama.members);
  const NodeEnd end = play.run(seed);
  EXPECT_FALSE(end.error) << end.error->message;
  return got;
}

// Relative to the exact sums, over all floats of a step.
double error_of(const Drama& drama, std::uint64_t step, const Buffer& sums) {
  const auto count = Drama::kSlotFloats[step % 2];
  std::vector<double> exact(count);
  for (std::uint32_t replica = 0; replica < drama.all(); ++replica) {
    const Buffer part = drama.part(step, 0, replica);
    const auto floats = drama.layout(step).floats_of(part);
    for (std::size_t i = 0; i < count; ++i) exact[i] += static_cast<double>(floats[i]);
  }
  double square = 0, difference = 0;
  const auto given = drama.layout(step).floats_of(sums);
  for (std::size_t i = 0; i < count; ++i) {
    square += exact[i] * exact[i];
    difference += std::pow(static_cast<double>(given[i]) - exact[i], 2);
  }
  return std::sqrt(difference / square);
}

// Going ahead or not, and for whatever order in which messages come.
void expect_same_sums(Drama drama) {
  const Sums expected = Reference(drama).sums();
  for (const bool ahead : {false, true}) {
    drama.ahead = ahead;
    for (std::uint64_t seed = 0; seed < 2; ++seed) {
      for (const Sums& sums : play_ring(drama, seed)) {
        ASSERT_TRUE(same(sums, expected))
            << drama.members << " members of " << drama.replicas << " replicas, seed " << seed;
      }
    }
  }
}

TEST(ReducerRing, EveryReplicaGetsTheSameBitsInEveryFormat) {
  for (const Format format : kFormats) {
    for (const std::uint32_t members : {2U, 3U, 5U}) {
      for (const std::uint32_t replicas : {1U, 2U}) {
        ASSERT_NO_FATAL_FAILURE(expect_same_sums({format, members, replicas, true}));
      }
    }
  }
  expect_same_sums({std::nullopt, 1, 3, true});  // a lone member
}

TEST(ReducerRing, Of64MembersReduces) {
  Drama drama{std::nullopt, 64, 1, true, true, 3};
  EXPECT_TRUE(same(play_ring(drama, 1).back(), Reference(drama).sums()));
  drama.rows = pipeline::even_rows(64, 8);
  EXPECT_TRUE(same(play_ring(drama, 1).back(), Reference(drama).sums()));
}

// Exact sums are those of one ring; those of a lossy format are the same for all members.
TEST(ReducerRing, InRowsEveryReplicaGetsTheSameBitsInEveryFormat) {
  const std::pair<std::uint32_t, std::vector<std::uint32_t>> shapes[] = {
      {4, {0, 2}}, {5, {1, 3}}, {5, {0, 1}}, {3, {0, 1, 2}}, {7, {2, 4, 5}}};
  for (const auto& [members, rows] : shapes) {
    for (const Format format : kFormats) {
      Drama drama{format, members, 2, true};
      const Sums in_one_ring = Reference(drama).sums();
      drama.rows = rows;
      ASSERT_NO_FATAL_FAILURE(expect_same_sums(drama)) << testing::PrintToString(rows);
      EXPECT_TRUE(format || same(Reference(drama).sums(), in_one_ring));
    }
  }
}

// Int8 drops most of what is small, and gives it later: the tests of the formats say how well.
TEST(ReducerRing, SumsAreThoseOfTheReplicasWithinTheFormatsBounds) {
  const std::pair<Format, double> bounds[] = {{std::nullopt, 0.0},
                                              {ReductionFormat::kFp32, 1e-6},
                                              {ReductionFormat::kBf16, 1e-2},
                                              {ReductionFormat::kInt8, 0.2}};
  for (const auto& [format, bound] : bounds) {
    const Drama drama{format, 3};
    const Sums sums = play_ring(drama, 1).front();
    ASSERT_EQ(sums.size(), drama.steps);
    for (const auto& [step, sum] : sums) {
      if (format) {
        EXPECT_LT(error_of(drama, step, sum), bound) << step;
      }
      const auto integers = drama.layout(step).integers_of(sum);
      for (std::size_t i = 0; i < integers.size(); ++i) {
        std::int64_t expected = 0;
        for (std::uint32_t replica = 0; replica < 3; ++replica) {
          expected += drama.integer(step, 0, replica, i);
        }
        EXPECT_EQ(integers[i], expected);
      }
    }
  }
}

// What the first attempt has left over belongs to no step.
TEST(ReducerRing, StepThatIsMadeAgainAndAllAfterItEqualThoseThatNeverWere) {
  for (const Format format : kFormats) {
    const Drama once{format, 3, 1, false};
    const Drama again{format, 3, 1, true};
    EXPECT_TRUE(same(play_ring(again, 1).front(), play_ring(once, 1).front()));
  }
}

// In a lossy format the same parts give other sums where more was left over before.
TEST(ReducerRing, WhatASlotsStepLeavesOverGoesIntoItsNextAndIntoNoOther) {
  const Drama drama{ReductionFormat::kInt8, 2};
  const Sums sums = play_ring(drama, 1).front();
  for (std::uint64_t step = 0; step < 4; ++step) {
    // Alone: as a run would give it that begins with this step.
    std::vector<pipeline::BucketArithmetic> fresh(
        2, pipeline::BucketArithmetic(drama.format, drama.slot_floats()));
    const auto slot = static_cast<std::uint32_t>(step % 2);
    const std::vector<pipeline::Bucket> buckets = drama.buckets(step);
    const pipeline::Bucket bucket = buckets.back();
    const std::uint32_t home =
        pipeline::BucketRoutes(2).home_of(static_cast<std::uint32_t>(buckets.size()) - 1);
    const std::size_t offset = drama.layout(step).offset(bucket.offset);
    const auto part = [&](std::uint32_t member) {
      return drama.part(step, 0, member).slice(offset, bucket.bytes());
    };
    const Buffer first = fresh[1 - home].add(slot, bucket, {}, part(1 - home));
    const Buffer wire = fresh[home].add(slot, bucket, {{first}}, part(home));
    const Buffer alone = fresh[home].sum_from(bucket, wire);
    EXPECT_EQ(same(sums.at(step).slice(offset, bucket.bytes()), alone), step < 2) << step;
  }
}

}  // namespace
}  // namespace troupe::actors
