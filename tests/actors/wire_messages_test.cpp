#include "actors/message_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <msgpack.hpp>

#include "runtime/base/hash.h"
#include "runtime/transport/packets.h"
#include "tests/actors/field_archives.h"
#include "tests/actors/wire_parts.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;
using runtime::WireReader;
using runtime::WireTypes;

// Bodies that travel without payloads, with content drawn at random.
template <class... Bodies>
struct Drawn {
  static void add_each(Draw& draw, std::vector<Parts>& all) {
    (all.push_back(parts_of(drawn<Bodies>(draw))), ...);
  }
  static void expect_each_back(Draw& draw) { (expect_back<Bodies>(draw), ...); }

 private:
  template <class Body>
  static void expect_back(Draw& draw) {
    const Body body = drawn<Body>(draw);
    EXPECT_EQ(told(round_trip(body)), told(body)) << Body::kName;
  }
};
using AllDrawn =
    Drawn<BeginTraining, Halt, Halted, TellSteps, Teach, Lesson, Learned, TooSlow, Pace,
          ViewMessage, Entered, Feed, EndOfData, RingHeader, Snapshot, StepMetrics, SampleMetrics,
          ReplicaEnd, StopTraining, NeighbourLost, Leaving, Expelled, MemberFailed, Release,
          CheckpointRequest, FigureAsked, FigureFound, Probe, NodeReport>;

// One of each body that can travel, with content drawn by `seed`.
std::vector<Parts> one_of_each(std::uint64_t seed) {
  Draw draw(seed);
  std::vector<Parts> all;
  AllDrawn::add_each(draw, all);
  all.push_back(parts_of(RingBucket{{draw.number(), draw.number32(), 7, 10, 20,
                                     pipeline::SumKind::kInt64, draw_id(draw)},
                                    draw.flag(),
                                    std::nullopt},
                         {Buffer::zeroed(80)}));
  all.push_back(
      parts_of(BatchMessage{draw.number(), draw.number32(), 2, draw.number32(), draw.number32()},
               {Buffer::zeroed(24), Buffer::zeroed(24), Buffer::zeroed(16)}));
  return all;
}

TEST(WireMessages, EveryBodyComesBackAsItWas) {
  Draw draw(1);
  for (int round = 0; round < 100; ++round) AllDrawn::expect_each_back(draw);
  for (const bool summed : {false, true}) {
    const RingBucket bucket{
        {1, 2, 3, 4, 6, pipeline::SumKind::kInt64, {7, 8}}, summed, std::nullopt};
    EXPECT_EQ(told(round_trip(bucket, {Buffer::zeroed(16)})), told(bucket));
  }
  const BatchMessage batch{1, 2, 1, 3, 4};
  EXPECT_EQ(told(round_trip(batch, {Buffer::zeroed(4), Buffer::zeroed(12), Buffer::zeroed(8)})),
            told(batch));
}

// A change of what is sent has another digest here. If a release sends what was here before, the
// change is a new kProtocolVersion too.
TEST(WireMessages, BytesAreThoseOfTheProtocolsVersion) {
  runtime::Hasher hasher;
  for (const Parts& parts : one_of_each(4)) {
    hasher.add(parts.header);
    for (const Buffer& attachment : parts.attachments) hasher.add(attachment.bytes());
  }
  EXPECT_EQ(hasher.digest().text(), "50aeacee4aeb8e8e49b7cd8d264805d1");
}

TEST(WireMessages, SamplesThatComeBackCostTheSameCredit) {
  Draw draw(9);
  for (int round = 0; round < 100; ++round) {
    const auto samples = drawn<SampleMetrics>(draw);
    EXPECT_EQ(round_trip(samples).bytes(), samples.bytes());
  }
}

TEST(WireMessages, StatesThatComeBackHaveTheirHash) {
  Draw draw(2);
  for (int round = 0; round < 100; ++round) {
    const auto body = drawn<Snapshot>(draw);
    EXPECT_EQ(pipeline::hash_of_state(*round_trip(body).state),
              pipeline::hash_of_state(*body.state));
  }
}

TEST(WireMessages, SamplesOfNamesThatAreNoneAreRefused) {
  EXPECT_EQ(problem_of(parts_of(SampleMetrics{{{"a/b_c.0-9", 1.0}}})), "");
  EXPECT_EQ(problem_of(parts_of(SampleMetrics{{{std::string(kMostSampleName, 'a'), 1.0}}})), "");
  const std::string names[] = {
      "", "a b", "A", "a\n", "\xc3\xa4", "\"", std::string(kMostSampleName + 1, 'a')};
  for (const std::string& name : names) {
    EXPECT_NE(problem_of(parts_of(SampleMetrics{{{name, 1.0}}})), "") << name;
  }
}

TEST(WireMessages, MoreSamplesThanAMessageMayHaveAreRefused) {
  runtime::WireWriter out;
  out.list(1);
  out.list(kMostSamples + 1);
  for (std::size_t i = 0; i <= kMostSamples; ++i) {
    out.list(2);
    out.text("a");
    out.real(1.0);
  }
  const Buffer header = out.take_header();
  Parts parts{
      std::string(SampleMetrics::kName), {header.bytes().begin(), header.bytes().end()}, {}, {}};
  EXPECT_NE(problem_of(parts), "");
}

TEST(WireMessages, EveryBodyIsOneValue) {
  for (const Parts& parts : one_of_each(4)) {
    std::size_t end = 0;
    const auto value = msgpack::unpack(reinterpret_cast<const char*>(parts.header.data()),
                                       parts.header.size(), end);
    EXPECT_EQ(end, parts.header.size()) << parts.name;
    EXPECT_EQ(value.get().type, msgpack::type::ARRAY) << parts.name;
  }
}

TEST(WireMessages, BodyCutAnywhereIsRefused) {
  for (Parts parts : one_of_each(5)) {
    ASSERT_EQ(problem_of(parts), "") << parts.name;
    while (!parts.header.empty()) {
      parts.header.pop_back();
      ASSERT_NE(problem_of(parts), "") << parts.name << " of " << parts.header.size();
    }
  }
}

TEST(WireMessages, FramesTooManyOrTooFewAreRefused) {
  for (const Parts& parts : one_of_each(6)) {
    Parts more = parts;
    more.attachments.push_back(Buffer::zeroed(4));
    EXPECT_NE(problem_of(more), "") << parts.name;
    if (parts.attachments.empty()) continue;
    Parts fewer = parts;
    fewer.attachments.pop_back();
    EXPECT_NE(problem_of(fewer), "") << parts.name;
  }
}

TEST(WireMessages, HeaderThatNoStepCanHaveIsRefused) {
  Draw draw(8);
  RingHeader body = drawn<RingHeader>(draw);
  body.header.exponents = {1, 2};
  body.header.non_finite = {0, 1};
  EXPECT_EQ(problem_of(parts_of(body)), "");
  body.header.non_finite = {0, 2};
  EXPECT_NE(problem_of(parts_of(body)), "");
  body.header.non_finite = {};
  body.header.attempt = 2;
  EXPECT_NE(problem_of(parts_of(body)), "");
}

TEST(WireMessages, DistanceThatIsNoNumberIsRefused) {
  RingHeader body;
  EXPECT_EQ(problem_of(parts_of(body)), "");
  body.header.distance = std::nan("");
  EXPECT_THAT(problem_of(parts_of(body)), testing::HasSubstr("a distance that is no number"));
  EXPECT_EQ(problem_of(parts_of(FigureFound{3, HUGE_VAL})), "");
  EXPECT_THAT(problem_of(parts_of(FigureFound{3, std::nan("")})),
              testing::HasSubstr("a distance that is no number"));
}

TEST(WireMessages, HeaderOfExponentsThatNoFloatHasIsRefused) {
  const auto problem = [](int exponent) {
    RingHeader body;
    body.header.exponents = {3, static_cast<std::int16_t>(exponent)};
    return problem_of(parts_of(std::move(body)));
  };
  for (const int exponent : {INT16_MIN, -148, -1, 0, 128}) EXPECT_EQ(problem(exponent), "");
  for (const int exponent : {INT16_MIN + 1, -149, 129, INT16_MAX}) {
    EXPECT_THAT(problem(exponent), testing::HasSubstr("an exponent that no float has")) << exponent;
  }
}

TEST(WireMessages, SnapshotWhoseArraysDoNotFitIsRefused) {
  Draw draw(9);
  auto state = drawn<pipeline::TrainingState>(draw);
  state.turns.reset();  // as many as its slot says
  const auto refused = [&] {
    return !problem_of(parts_of(Snapshot{std::make_shared<const pipeline::TrainingState>(state)}))
                .empty();
  };
  EXPECT_FALSE(refused());
  state.slot = static_cast<std::uint32_t>(state.scales.size());
  EXPECT_TRUE(refused());
  state.slot = 0;
  state.generator.weights.assign(4, 1.0F);
  state.generator.optimiser_arrays.assign(9, 1.0F);
  EXPECT_TRUE(refused());
  state.generator.optimiser_arrays.assign(8, 1.0F);
  EXPECT_FALSE(refused());
  state.generator.weights.clear();
  EXPECT_TRUE(refused());
  state.generator.optimiser_arrays.clear();
  EXPECT_FALSE(refused());
  state.discriminator.weights.assign(4, 1.0F);
  state.discriminator.optimiser_arrays.assign(7, 1.0F);
  EXPECT_TRUE(refused());

  Parts broken_float = parts_of(drawn<Snapshot>(draw));
  broken_float.attachments.back() = Buffer::zeroed(7);
  EXPECT_NE(problem_of(broken_float), "");
}

TEST(WireMessages, ArrayAtAnyAddressIsTaken) {
  Draw draw(10);
  const StatePointer state = drawn<Snapshot>(draw).state;
  Parts parts = parts_of(Snapshot{state});
  for (Buffer& attachment : parts.attachments) {
    Buffer shifted = Buffer::zeroed(attachment.size() + 1);
    if (!attachment.empty()) {
      std::memcpy(shifted.mutable_data() + 1, attachment.data(), attachment.size());
    }
    attachment = shifted.slice(1, attachment.size());
  }
  WireReader in(parts.header, parts.attachments);
  Snapshot back;
  runtime::read_fields(in, back);
  ASSERT_TRUE(in.finished()) << in.problem();
  EXPECT_EQ(pipeline::hash_of_state(*back.state), pipeline::hash_of_state(*state));
}

// For a model that a receiver does not train.
TEST(WireMessages, StateThatTheReceiverDoesNotKnowIsRefusedInEveryBodyThatHasOne) {
  WireTypes checking;
  add_wire_messages(checking, [](const pipeline::TrainingState& state) -> runtime::Result<void> {
    if (state.seed == 1) return {};
    return runtime::Error{runtime::ErrorKind::kData, "of another model"};
  });
  const auto problem = [&](const Parts& parts) {
    WireReader in(parts.header, parts.attachments);
    const bool made = checking.unpack(parts.name, in, parts.payloads).ok();
    EXPECT_EQ(made, in.ok());
    return in.problem();
  };
  Draw draw(7);
  auto state = drawn<pipeline::TrainingState>(draw);
  for (const std::uint64_t seed : {1, 2}) {
    state.seed = seed;
    const auto pointer = std::make_shared<const pipeline::TrainingState>(state);
    ReplicaEnd end;
    end.state = pointer;
    const Parts all[] = {parts_of(BeginTraining{pointer}), parts_of(Snapshot{pointer}),
                         parts_of(std::move(end))};
    for (const Parts& parts : all) {
      if (seed == 1) {
        EXPECT_EQ(problem(parts), "") << parts.name;
      } else {
        EXPECT_THAT(problem(parts), testing::HasSubstr("of another model")) << parts.name;
      }
    }
  }
  EXPECT_EQ(problem(parts_of(ReplicaEnd{})), "");
}

}  // namespace
}  // namespace troupe::actors
