// Rings that send floats: what the replicas get, bit by bit, and what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/reducer.h"
#include "pipeline/steps/ring_schedule.h"
#include "runtime/base/random.h"
#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using pipeline::ReductionFormat;
using runtime::Buffer;
using runtime::Context;
using runtime::ErrorKind;
using runtime::Message;
using runtime::NodeEnd;
using runtime::Script;
using testing::HasSubstr;

constexpr ReductionFormat kFormats[] = {ReductionFormat::kFp32, ReductionFormat::kBf16,
                                        ReductionFormat::kInt8};
constexpr std::int64_t kSegment = 4 << 10;

// What all contributors of a ring agree upon. Steps of two slots take turns, of other sizes.
struct Drama {
  ReductionFormat format = ReductionFormat::kInt8;
  std::uint32_t members = 2;
  std::uint32_t replicas = 1;  // of each member
  bool repeats = false;        // some steps are flagged, and made again
  std::uint64_t steps = 6;

  static constexpr std::size_t kSlotFloats[] = {3000, 700};

  std::uint32_t all() const { return members * replicas; }
  bool repeated(std::uint64_t step) const { return repeats && step % 3 != 1; }
  static pipeline::SumLayout layout(std::uint64_t step) {
    const auto floats = static_cast<std::int64_t>(kSlotFloats[step % 2]);
    return {floats + 5, floats};
  }
  std::vector<pipeline::Bucket> buckets(std::uint64_t step) const {
    return pipeline::make_buckets(layout(step), kSegment, members);
  }
  // One replica's part, of both attempts: in every block one element is much larger than others.
  static Buffer part(std::uint64_t step, std::uint32_t replica) {
    const pipeline::SumLayout sums = layout(step);
    Buffer part = Buffer::zeroed(sums.bytes());
    const pipeline::MutableSums parts = sums.parts_of(part);
    runtime::fill_normal({.seed = step + 1, .micro_batch = replica}, parts.floats.data(),
                         static_cast<std::uint32_t>(parts.floats.size()));
    for (std::size_t i = 0; i < parts.floats.size(); i += 100) parts.floats[i] *= 50.0F;
    for (std::int64_t& integer : parts.integers) integer = (std::int64_t{1} << 55) + replica;
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
      members_.emplace_back(drama.format, std::vector<std::size_t>(std::begin(Drama::kSlotFloats),
                                                                   std::end(Drama::kSlotFloats)));
    }
  }

  Sums sums() {
    Sums all;
    for (std::uint64_t step = 0; step < drama_.steps; ++step) {
      if (drama_.repeated(step)) make(step, false);
      all[step] = make(step, true);
    }
    return all;
  }

 private:
  Buffer own(std::uint64_t step, std::uint32_t member, const pipeline::Bucket& bucket) const {
    std::vector<Buffer> parts;
    for (std::uint32_t i = 0; i < drama_.replicas; ++i) {
      parts.push_back(Drama::part(step, member * drama_.replicas + i)
                          .slice(Drama::layout(step).offset(bucket.offset), bucket.bytes()));
    }
    return pipeline::BucketArithmetic::sum_of(parts, bucket.floats);
  }

  Buffer make(std::uint64_t step, bool applied) {
    const auto slot = static_cast<std::uint32_t>(step % 2);
    const pipeline::SumLayout layout = Drama::layout(step);
    Buffer sums = Buffer::zeroed(layout.bytes());
    std::uint32_t number = 0;
    for (const pipeline::Bucket& bucket : drama_.buckets(step)) {
      const std::uint32_t home = pipeline::home_of(number++, drama_.members);
      std::uint32_t at = (home + 1) % drama_.members;
      Buffer wire = members_[at].begin(slot, bucket, own(step, at, bucket));
      while (at != home) {
        at = (at + 1) % drama_.members;
        wire = members_[at].add(slot, bucket, wire, own(step, at, bucket));
      }
      const Buffer sum = members_[home].sum_from(bucket, wire);
      std::ranges::copy(sum.bytes(), sums.mutable_data() + layout.offset(bucket.offset));
    }
    for (auto& member : members_) member.close(slot, applied);
    return sums;
  }

  const Drama drama_;
  std::vector<pipeline::BucketArithmetic> members_;
};

// Plays a replica. Its buckets of a step are out before the step in front of it is summed.
class Contributor final : public runtime::Actor {
 public:
  Contributor(const Drama& drama, std::uint32_t number, Sums& got)
      : drama_(drama), number_(number), got_(got) {}

  void receive(Context& context, Message message) override {
    if (message.as<ViewMessage>() != nullptr) {
      contribute(0, 0);
      say_header(0);
      contribute(1, 0);
    } else if (const auto* bucket = message.as<BucketMessage>()) {
      const pipeline::SumLayout layout = Drama::layout(bucket->step);
      auto [sums, fresh] = got_.try_emplace(bucket->step);
      if (fresh) sums->second = Buffer::zeroed(layout.bytes());
      std::ranges::copy(message.payloads().front().bytes(),
                        sums->second.mutable_data() + layout.offset(bucket->begin));
    } else if (const auto* header = message.as<HeaderMessage>()) {
      go_on(context, header->header.flagged);
    }
    flush(context);
  }

  void credit_returned(Context& context, std::string_view) override { flush(context); }

 private:
  void contribute(std::uint64_t step, std::uint32_t attempt) {
    if (step >= drama_.steps) return;
    const Buffer part = Drama::part(step, number_);
    std::uint32_t number = 0;
    for (const pipeline::Bucket& bucket : drama_.buckets(step)) {
      const BucketMessage body{step,         attempt,       number++,  bucket.offset,
                               bucket.end(), bucket.floats, kFirstView};
      out_.push_back(
          Message::of(BucketMessage(body),
                      {part.slice(Drama::layout(step).offset(bucket.offset), bucket.bytes())}));
    }
  }

  void say_header(std::uint32_t attempt) {
    HeaderMessage message;
    message.view = kFirstView;
    message.header.step = step_;
    message.header.attempt = attempt;
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
    say_header(0);
    contribute(step_ + 1, 0);
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

std::string name(const char* kind, std::uint32_t number) {
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
  options.slot_floats.assign(std::begin(Drama::kSlotFloats), std::end(Drama::kSlotFloats));
  return options;
}

// What each replica has got.
std::vector<Sums> play_ring(const Drama& drama, std::uint64_t seed) {
  std::vector<Sums> got(drama.all());
  Play play;
  Script root;
  root.start = [&drama](Context& context) {
    const ViewPointer view = view_of(drama.members, drama.all(), drama.replicas);
    for (std::uint32_t member = 0; member < drama.members; ++member) {
      context.send_control(name("reducer", member), Message::of(ViewMessage{view}));
    }
  };
  root.receive = [done = 0U, all = drama.all()](Context& context, const Message&) mutable {
    if (++done == all) context.finish();
  };
  play.actor("coordinator", root);
  for (std::uint32_t member = 0; member < drama.members; ++member) {
    play.actor(name("reducer", member), [options = reducer_options(drama, member)] {
      return std::make_unique<Reducer>(options);
    });
  }
  for (std::uint32_t number = 0; number < drama.all(); ++number) {
    play.actor(name("replica", number), [&drama, number, &got] {
      return std::make_unique<Contributor>(drama, number, got[number]);
    });
    const std::string reducer = name("reducer", number / drama.replicas);
    play.link(name("replica", number), "contributions", reducer, "contributions");
    play.link(reducer, name("reduced", number), name("replica", number), "reduced",
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
    const Buffer part = Drama::part(step, replica);
    const auto floats = Drama::layout(step).floats_of(part);
    for (std::size_t i = 0; i < count; ++i) exact[i] += static_cast<double>(floats[i]);
  }
  double square = 0, difference = 0;
  const auto given = Drama::layout(step).floats_of(sums);
  for (std::size_t i = 0; i < count; ++i) {
    square += exact[i] * exact[i];
    difference += std::pow(static_cast<double>(given[i]) - exact[i], 2);
  }
  return std::sqrt(difference / square);
}

TEST(ReducerLossy, EveryReplicaOfARingGetsTheSameBitsInEveryFormat) {
  for (const ReductionFormat format : kFormats) {
    for (const std::uint32_t members : {2U, 3U, 5U}) {
      for (const std::uint32_t replicas : {1U, 2U}) {
        const Drama drama{format, members, replicas, true};
        const Sums expected = Reference(drama).sums();
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
          const std::vector<Sums> got = play_ring(drama, seed);
          for (const Sums& sums : got) {
            ASSERT_TRUE(same(sums, expected))
                << members << " members of " << replicas << " replicas, seed " << seed;
          }
        }
      }
    }
  }
}

// Int8 drops most of what is small, and gives it later: the tests of the formats say how well.
TEST(ReducerLossy, SumsAreThoseOfTheReplicasWithinTheFormatsBounds) {
  const std::pair<ReductionFormat, double> bounds[] = {{ReductionFormat::kFp32, 1e-6},
                                                       {ReductionFormat::kBf16, 1e-2},
                                                       {ReductionFormat::kInt8, 0.2}};
  for (const auto& [format, bound] : bounds) {
    const Drama drama{format, 3};
    const Sums sums = play_ring(drama, 1).front();
    ASSERT_EQ(sums.size(), drama.steps);
    for (const auto& [step, sum] : sums) {
      EXPECT_LT(error_of(drama, step, sum), bound) << step;
      for (const std::int64_t integer : Drama::layout(step).integers_of(sum)) {
        EXPECT_EQ(integer, 3 * (std::int64_t{1} << 55) + 0 + 1 + 2);
      }
    }
  }
}

// What the first attempt has left over belongs to no step.
TEST(ReducerLossy, StepThatIsMadeAgainAndAllAfterItEqualThoseThatNeverWere) {
  for (const ReductionFormat format : kFormats) {
    const Drama once{format, 3, 1, false};
    const Drama again{format, 3, 1, true};
    EXPECT_TRUE(same(play_ring(again, 1).front(), play_ring(once, 1).front()));
  }
}

// In a lossy format the same parts give other sums where more was left over before.
TEST(ReducerLossy, WhatASlotsStepLeavesOverGoesIntoItsNextAndIntoNoOther) {
  const Drama drama{ReductionFormat::kInt8, 2};
  const Sums sums = play_ring(drama, 1).front();
  for (std::uint64_t step = 0; step < 4; ++step) {
    // Alone: as a run would give it that begins with this step.
    std::vector<pipeline::BucketArithmetic> fresh;
    for (int i = 0; i < 2; ++i) {
      fresh.emplace_back(drama.format, std::vector<std::size_t>{3000, 700});
    }
    const auto slot = static_cast<std::uint32_t>(step % 2);
    const pipeline::Bucket bucket = drama.buckets(step).back();
    const std::uint32_t home =
        pipeline::home_of(static_cast<std::uint32_t>(drama.buckets(step).size()) - 1, 2);
    const auto part = [&](std::uint32_t member) {
      return Drama::part(step, member)
          .slice(Drama::layout(step).offset(bucket.offset), bucket.bytes());
    };
    const Buffer wire = fresh[home].add(
        slot, bucket, fresh[1 - home].begin(slot, bucket, part(1 - home)), part(home));
    const Buffer alone = fresh[home].sum_from(bucket, wire);
    const Buffer given =
        sums.at(step).slice(Drama::layout(step).offset(bucket.offset), bucket.bytes());
    EXPECT_EQ(same(given, alone), step < 2) << step;
  }
}

Message ring_bucket(std::optional<ReductionFormat> format) {
  constexpr std::size_t kElements = 256;
  const std::size_t bytes = format ? pipeline::encoded_bytes(*format, kElements) : kElements * 8;
  return Message::of(
      RingBucket{{0, 0, 0, 0, kElements, format.has_value(), kFirstView}, false, format},
      {Buffer::zeroed(bytes)});
}

// The reducer at position 0 of 3, when its replica contributes bucket 0, before or after the one
// before it in the ring says this.
NodeEnd hear(std::optional<ReductionFormat> own, std::optional<ReductionFormat> other,
             bool own_first) {
  Play play;
  Script root;
  root.start = [](Context& context) {
    context.send_control("reducer", Message::of(ViewMessage{view_of(3, 1)}));
  };
  play.actor("coordinator", root);
  ReducerOptions options;
  options.lossy = own;
  options.slot_floats = {256};
  play.actor("reducer", [options] { return std::make_unique<Reducer>(options); });
  const auto speaker = [](const char* port, bool first, const std::function<Message()>& line) {
    Script script;
    script.start = [=](Context& context) {
      context.after(std::chrono::seconds(first ? 1 : 2));
      context.after(std::chrono::seconds(3));
    };
    script.timer = [=, said = false](Context& context, runtime::TimerId) mutable {
      if (!std::exchange(said, true)) context.send(port, line());
    };
    return script;
  };
  play.actor("replica.0", speaker("contributions", own_first, [own] {
               return Message::of(BucketMessage{0, 0, 0, 0, 256, own.has_value(), kFirstView},
                                  {Buffer::zeroed(own ? 1024U : 2048U)});
             }));
  play.actor("before", speaker("ring", !own_first, [other] { return ring_bucket(other); }));
  play.link("replica.0", "contributions", "reducer", "contributions");
  play.link("reducer", "reduced.0", "replica.0", "reduced", runtime::Lane::kData, 8, 1);
  play.link("before", "ring", "reducer", "ring", runtime::Lane::kData, 8, 1);
  play.link("reducer", "ring.1", "before", "ring", runtime::Lane::kData, 8, 1);
  return play.run(1);
}

TEST(ReducerLossy, BucketInAnotherFormatIsRefusedAndItsSenderNamed) {
  ASSERT_FALSE(pipeline::ring_role(0, 0, 3).begins);
  const std::vector<std::optional<ReductionFormat>> all{
      std::nullopt, ReductionFormat::kFp32, ReductionFormat::kBf16, ReductionFormat::kInt8};
  for (const auto& own : all) {
    for (const auto& other : all) {
      if (own == other) continue;
      for (const bool own_first : {true, false}) {
        const NodeEnd end = hear(own, other, own_first);
        ASSERT_TRUE(end.error);
        EXPECT_EQ(end.error->kind, ErrorKind::kLostPeers);
        EXPECT_THAT(end.error->message, HasSubstr("before contributed bucket 0 "));
      }
    }
  }
}

}  // namespace
}  // namespace troupe::actors
