#include "actors/wire_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <msgpack.hpp>

#include "actors/wire_state.h"
#include "tests/actors/wire_parts.h"
#include "tests/model/allocation_counter.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;
using runtime::Message;
using runtime::WireReader;
using runtime::WireTypes;

pipeline::NetworkState draw_network(Draw& draw) {
  pipeline::NetworkState network;
  const std::size_t weights = draw.up_to(500);
  network.weights = draw.floats(weights);
  network.moving = draw.floats(draw.up_to(50));
  network.optimiser_arrays = draw.floats(weights * draw.up_to(3));
  network.counters = {draw.number(), draw.real(), draw.real()};
  network.learning_rate = {draw.real(), draw.real(), draw.number32(), draw.number32(),
                           draw.number32()};
  return network;
}

pipeline::TrainingState draw_state(Draw& draw) {
  pipeline::TrainingState state;
  state.generator = draw_network(draw);
  state.discriminator = draw_network(draw);
  state.scales.resize(1 + draw.up_to(5));
  for (auto& slot : state.scales) slot = draw.exponents(40);
  state.seed = draw.number();
  state.epoch = draw.number();
  state.iteration = draw.number();
  state.slot = static_cast<std::uint32_t>(draw.up_to(state.scales.size() - 1));
  state.epoch_events = draw.number();
  state.micro_batch = draw.number32();
  state.micro_batches = draw.number32();
  state.empty_iterations = draw.number32();
  state.epoch_loss = {draw.real(), draw.real()};
  state.epoch_loss_steps = {draw.number(), draw.number()};
  state.ledger_events = draw.number();
  state.ledger_sum = draw.number();
  state.numerics_class = draw.text(60);
  state.data_fingerprint = draw.hash();
  return state;
}

StatePointer draw_state_pointer(Draw& draw) {
  return std::make_shared<const pipeline::TrainingState>(draw_state(draw));
}

RingHeader draw_header(Draw& draw) {
  RingHeader body;
  body.header.step = draw.number();
  body.header.attempt = static_cast<std::uint32_t>(draw.up_to(1));
  body.header.exponents.resize(draw.up_to(100));
  for (auto& exponent : body.header.exponents) exponent = draw.exponent();
  body.header.flagged = body.header.attempt == 0 && draw.flag();
  if (!body.header.exponents.empty() && draw.flag()) {
    body.header.non_finite = {
        draw.number32(), static_cast<std::uint32_t>(draw.up_to(body.header.exponents.size() - 1))};
  }
  body.header.micro_batches = draw.number32();
  body.header.events = draw.number();
  body.header.event_sum = draw.number();
  body.header.state_minimum = draw.hash();
  body.header.state_maximum = draw.hash();
  body.header.check_minimum = draw.hash();
  body.header.check_maximum = draw.hash();
  body.header.stop_requested = draw.flag();
  body.header.checkpoint_requested = draw.flag();
  body.combined = draw.flag();
  body.view = draw_id(draw);
  return body;
}

StepMetrics draw_metrics(Draw& draw) {
  StepMetrics body;
  body.step = draw.number();
  body.epoch = draw.number();
  body.iteration = draw.number();
  body.slot = draw.number32();
  body.attempts = draw.number32();
  body.events = draw.number();
  body.event_sum = draw.number();
  body.losses.resize(draw.up_to(10));
  for (double& loss : body.losses) loss = draw.real();
  body.load_seconds = draw.real();
  body.compute_seconds = draw.real();
  body.reduce_seconds = draw.real();
  body.apply_seconds = draw.real();
  body.state_hash = draw.hash();
  body.again = draw.flag();
  return body;
}

SampleMetrics draw_samples(Draw& draw) {
  constexpr std::string_view kLetters = "abcxyz0189_.-/";
  SampleMetrics body;
  body.samples.resize(draw.up_to(kMostSamples));
  for (Sample& sample : body.samples) {
    sample.name.resize(1 + draw.up_to(kMostSampleName - 1));
    for (char& c : sample.name) c = kLetters[draw.up_to(kLetters.size() - 1)];
    sample.value = draw.real();
  }
  return body;
}

ReplicaEnd draw_end(Draw& draw) {
  ReplicaEnd body;
  body.replica = draw.number32();
  body.state = draw_state_pointer(draw);
  if (draw.flag()) body.error = {runtime::ErrorKind::kDiverged, draw.text(200)};
  body.seconds = draw.real();
  body.timed_events = draw.number();
  if (draw.flag()) body.last_step = draw_metrics(draw);
  body.validations = draw.number();
  return body;
}

// Doubles by their bits.
bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

void expect_same(const StepMetrics& a, const StepMetrics& b) {
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.iteration, b.iteration);
  EXPECT_EQ(a.slot, b.slot);
  EXPECT_EQ(a.attempts, b.attempts);
  EXPECT_EQ(a.events, b.events);
  EXPECT_EQ(a.event_sum, b.event_sum);
  EXPECT_EQ(a.again, b.again);
  EXPECT_TRUE(std::ranges::equal(a.losses, b.losses, same));
  EXPECT_TRUE(same(a.load_seconds, b.load_seconds));
  EXPECT_TRUE(same(a.compute_seconds, b.compute_seconds));
  EXPECT_TRUE(same(a.reduce_seconds, b.reduce_seconds));
  EXPECT_TRUE(same(a.apply_seconds, b.apply_seconds));
  EXPECT_EQ(a.state_hash, b.state_hash);
}

Probe draw_probe(Draw& draw) {
  return {draw.number(), runtime::TimePoint(draw.number()),
          static_cast<Probe::Wants>(draw.up_to(2))};
}

NodeReport draw_report(Draw& draw) {
  const Probe probe = draw_probe(draw);
  NodeReport body{probe.request, probe.sent, probe.wants, runtime::TimePoint(draw.number()), {}};
  const auto number = [&] { return static_cast<std::int64_t>(draw.number()); };
  body.sample = {draw.text(64), 0.5 * draw.number32(), number(), number(), number(), {}, {}};
  for (std::size_t left = draw.up_to(5); left > 0; --left) {
    body.sample.actors.push_back({draw.text(64), draw.text(16), number()});
  }
  for (std::size_t left = draw.up_to(5); left > 0; --left) {
    body.sample.links.push_back({draw.text(64), draw.text(64), draw.text(64), number(), number(),
                                 number(), number(), number()});
  }
  return body;
}

// One of each body that can travel, with content drawn by `seed`.
std::vector<Parts> one_of_each(std::uint64_t seed) {
  Draw draw(seed);
  std::vector<Parts> all;
  all.push_back(
      parts_of(RingBucket{{draw.number(), draw.number32(), 7, 10, 20, false, draw_id(draw)},
                          draw.flag(),
                          std::nullopt},
               {Buffer::zeroed(80)}));
  all.push_back(parts_of(Halt{draw_id(draw)}));
  all.push_back(parts_of(Halted{draw_id(draw), draw.number(), draw.number()}));
  all.push_back(
      parts_of(Halted{draw_id(draw), draw.number(), draw.number(), draw_view(draw).view}));
  all.push_back(parts_of(TellSteps{draw.number()}));
  all.push_back(parts_of(Teach{draw.number32(), draw.flag()}));
  all.push_back(parts_of(TooSlow{draw.number32()}));
  all.push_back(parts_of(Lesson{draw.number()}));
  all.push_back(parts_of(Learned{draw.number32(), draw.number(), draw.flag()}));
  all.push_back(parts_of(Pace{draw.number32(), draw.number(), draw.number(), draw.real()}));
  all.push_back(parts_of(draw_view(draw)));
  all.push_back(parts_of(draw_feed(draw)));
  all.push_back(
      parts_of(BatchMessage{draw.number(), draw.number32(), 2, draw.number32(), draw.number32()},
               {Buffer::zeroed(24), Buffer::zeroed(24), Buffer::zeroed(16)}));
  all.push_back(parts_of(EndOfData{draw.number()}));
  all.push_back(parts_of(FellowLost{draw.text(40), draw_error(draw)}));
  all.push_back(parts_of(Leaving{}));
  all.push_back(parts_of(draw_probe(draw)));
  all.push_back(parts_of(draw_report(draw)));
  all.push_back(parts_of(Expelled{draw_error(draw)}));
  all.push_back(parts_of(Release{draw.text(40)}));
  all.push_back(parts_of(draw_header(draw)));
  all.push_back(parts_of(Snapshot{draw_state_pointer(draw)}));
  all.push_back(parts_of(draw_metrics(draw)));
  all.push_back(parts_of(draw_samples(draw)));
  all.push_back(parts_of(draw_end(draw)));
  all.push_back(parts_of(StopTraining{}));
  all.push_back(parts_of(CheckpointRequest{}));
  return all;
}

TEST(WireMessages, BodiesOfNumbersComeBack) {
  const auto learned = round_trip(Learned{4, 2, true});
  EXPECT_EQ(learned.replica, 4U);
  EXPECT_EQ(learned.steps, 2U);
  EXPECT_TRUE(learned.complete);
  const auto pace = round_trip(Pace{4, 9, 80, 0.25});
  EXPECT_EQ(pace.replica, 4U);
  EXPECT_EQ(pace.iteration, 9U);
  EXPECT_EQ(pace.micro_batches, 80U);
  EXPECT_EQ(pace.seconds, 0.25);
  for (const bool summed : {false, true}) {
    const auto back = round_trip(RingBucket{{1, 2, 3, 4, 6, false, {7, 8}}, summed, std::nullopt},
                                 {Buffer::zeroed(16)});
    EXPECT_EQ(back.bucket.step, 1U);
    EXPECT_EQ(back.bucket.attempt, 2U);
    EXPECT_EQ(back.bucket.bucket, 3U);
    EXPECT_EQ(back.bucket.begin, 4);
    EXPECT_EQ(back.bucket.end, 6);
    EXPECT_EQ(back.bucket.view, (pipeline::ViewId{7, 8}));
    EXPECT_EQ(back.summed, summed);
  }
  round_trip(StopTraining{});
  round_trip(CheckpointRequest{});
  EXPECT_EQ(round_trip(Release{"why"}).why, "why");
}

TEST(WireMessages, RandomHeadersAndMetricsComeBack) {
  Draw draw(1);
  for (int round = 0; round < 200; ++round) {
    const RingHeader header = draw_header(draw);
    const RingHeader back = round_trip(header);
    EXPECT_EQ(back.header, header.header);
    EXPECT_EQ(back.combined, header.combined);
    EXPECT_EQ(back.view, header.view);
    const StepMetrics metrics = draw_metrics(draw);
    expect_same(round_trip(metrics), metrics);
  }
}

TEST(WireMessages, RandomSamplesComeBackAndCostTheSameCredit) {
  Draw draw(9);
  for (int round = 0; round < 100; ++round) {
    const SampleMetrics samples = draw_samples(draw);
    const SampleMetrics back = round_trip(samples);
    ASSERT_EQ(back.samples.size(), samples.samples.size());
    for (std::size_t i = 0; i < back.samples.size(); ++i) {
      EXPECT_EQ(back.samples[i].name, samples.samples[i].name);
      EXPECT_TRUE(same(back.samples[i].value, samples.samples[i].value));
    }
    EXPECT_EQ(back.bytes(), samples.bytes());
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

TEST(WireMessages, RandomStatesKeepTheirHash) {
  Draw draw(2);
  for (int round = 0; round < 100; ++round) {
    const StatePointer state = draw_state_pointer(draw);
    const Snapshot back = round_trip(Snapshot{state});
    EXPECT_EQ(pipeline::hash_of_state(*back.state), pipeline::hash_of_state(*state));
  }
}

TEST(WireMessages, RandomEndsComeBack) {
  Draw draw(3);
  for (int round = 0; round < 100; ++round) {
    const ReplicaEnd end = draw_end(draw);
    const ReplicaEnd back = round_trip(end);
    EXPECT_EQ(back.replica, end.replica);
    EXPECT_EQ(pipeline::hash_of_state(*back.state), pipeline::hash_of_state(*end.state));
    ASSERT_EQ(back.error.has_value(), end.error.has_value());
    if (end.error) {
      EXPECT_EQ(back.error->kind, end.error->kind);
      EXPECT_EQ(back.error->message, end.error->message);
    }
    EXPECT_TRUE(same(back.seconds, end.seconds));
    EXPECT_EQ(back.timed_events, end.timed_events);
    ASSERT_EQ(back.last_step.has_value(), end.last_step.has_value());
    if (end.last_step) expect_same(*back.last_step, *end.last_step);
    EXPECT_EQ(back.validations, end.validations);
  }
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

TEST(WireMessages, ChangedBytesNeverCrashAndCostAtMostFourTimesTheirSize) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 3000; ++round) {
    for (Parts parts : one_of_each(random() % 8)) {
      for (std::size_t changes = random() % 4; changes-- > 0;) {
        parts.header[random() % parts.header.size()] = static_cast<std::byte>(random());
      }
      const std::int64_t before = model::allocated_bytes_so_far();
      problem_of(parts);
      // The state's struct, its slots, the losses and the text of a problem come on top.
      ASSERT_LE(model::allocated_bytes_so_far() - before, 10000 + 4 * parts.bytes()) << parts.name;
    }
  }
}

TEST(WireMessages, HeaderThatNoStepCanHaveIsRefused) {
  Draw draw(8);
  RingHeader body = draw_header(draw);
  body.header.exponents = {1, 2};
  body.header.non_finite = {0, 1};
  EXPECT_EQ(problem_of(parts_of(body)), "");
  body.header.non_finite = {0, 2};
  EXPECT_NE(problem_of(parts_of(body)), "");
  body.header.non_finite = {};
  body.header.attempt = 2;
  EXPECT_NE(problem_of(parts_of(body)), "");
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
  pipeline::TrainingState state = draw_state(draw);
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

  Parts broken_float = parts_of(Snapshot{draw_state_pointer(draw)});
  broken_float.attachments.back() = Buffer::zeroed(7);
  EXPECT_NE(problem_of(broken_float), "");
}

TEST(WireMessages, ArrayAtAnyAddressIsTaken) {
  Draw draw(10);
  const StatePointer state = draw_state_pointer(draw);
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
  unpack(in, back);
  ASSERT_TRUE(in.finished()) << in.problem();
  EXPECT_EQ(pipeline::hash_of_state(*back.state), pipeline::hash_of_state(*state));
}

// Of a model that a receiver does not train.
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
  pipeline::TrainingState state = draw_state(draw);
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
