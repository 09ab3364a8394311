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

#include "actors/replica.h"
#include "tests/actors/theatre.h"

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

constexpr runtime::Duration kReduction = 10ms;

struct Setting {
  std::vector<model::SlotKind> schedule;  // empty: the toy's own: d_real, d_fake, g, g
  std::uint64_t iterations = 3;
  std::int64_t batch_credits = 16;
  bool overlap = true;
  bool idle = false;  // the replica has no micro-batches; others make up the whole
  std::optional<pipeline::ReductionFormat> lossy;
  std::uint64_t seed = 1;  // of the play
};

// One run of one replica between scripted neighbours.
class Rehearsal {
 public:
  explicit Rehearsal(Setting setting) : setting_(std::move(setting)) {
    options_ = toy_.context().options;
    if (!setting_.schedule.empty()) options_.schedule = setting_.schedule;
    options_.lossy = setting_.lossy;
    state_ = std::make_shared<const pipeline::TrainingState>(
        pipeline::initial_state(toy_.context().gan, options_, "test", {}));
  }

  // Told of every header before it is given back; false keeps it.
  std::function<bool(Context&, pipeline::StepHeader&)> on_header;
  // May change a bucket's sums before they are given back.
  std::function<void(const BucketMessage&, Buffer&)> on_sums;
  // Told of every line of the log when it is new.
  std::function<void(Context&, const std::string&)> on_line;
  // False: the loader does not send this iteration yet.
  std::function<bool(std::uint64_t)> may_load;

  void run() {
    play_.actor("coordinator", coordinator()).actor("loader", loader());
    play_.actor("reducer", reducer()).actor("replica.0", [this] {
      ReplicaOptions options;
      options.section.threads = 2;
      options.section.overlap = setting_.overlap;
      return std::make_unique<Replica>(
          options, TrainingContext{toy_.context().gan, toy_.context().backend, options_});
    });
    constexpr auto kData = runtime::Lane::kData;
    play_.link("loader", "batches", "replica.0", "batches", kData, setting_.batch_credits);
    play_.link("replica.0", "contributions", "reducer", "contributions");
    play_.link("reducer", "reduced", "replica.0", "reduced", kData, 8, 1);
    end = play_.run(setting_.seed);
  }

  std::uint64_t steps() const { return setting_.iterations * options_.schedule.size(); }
  // Where this line stands in the log; behind all when it does not.
  std::ptrdiff_t place(const std::string& line) const {
    return std::find(log.begin(), log.end(), line) - log.begin();
  }
  bool in_order(const std::string& first, const std::string& second) const {
    return place(first) < place(second) && place(second) < std::ssize(log);
  }
  // Whether all of step `next` was contributed before the step in front of it was reduced.
  bool went_ahead(std::uint64_t next) const {
    return in_order(fmt::format("bucket {}.0", next), answer(next - 1));
  }
  // When the step was reduced for good.
  std::string answer(std::uint64_t step) const {
    const std::string second = fmt::format("answer {}.1", step);
    return place(second) < std::ssize(log) ? second : fmt::format("answer {}.0", step);
  }
  // Spans of that name and step, from the trace.
  std::vector<runtime::TraceRecord> spans(const std::string& name, std::uint64_t step) const {
    std::vector<runtime::TraceRecord> found;
    for (const runtime::TraceRecord& record : trace.records) {
      if (trace.names[record.name] == name && record.argument == static_cast<std::int64_t>(step)) {
        found.push_back(record);
      }
    }
    return found;
  }
  // Whether a span of one name lies in one of the other, and ends before that does.
  bool overlaps(const std::string& inner, std::uint64_t inner_step, const std::string& outer,
                std::uint64_t outer_step) const {
    for (const auto& a : spans(inner, inner_step)) {
      for (const auto& b : spans(outer, outer_step)) {
        if (a.start >= b.start && a.end < b.end) return true;
      }
    }
    return false;
  }

  runtime::NodeEnd end;
  std::vector<std::string> log;  // "bucket 3.0", "header 3.0", "answer 3.0": step and attempt
  std::map<std::uint64_t, runtime::Hash128> hashes;  // of the state before the step
  std::optional<ReplicaEnd> report;
  runtime::TraceSnapshot trace;  // of the replica, when it reported
  std::int64_t batches_sent = 0;
  const pipeline::TrainingOptions& options() const { return options_; }
  StatePointer initial() const { return state_; }
  void stop(Context& context) { context.send_control("replica.0", Message::of(StopTraining{})); }

 private:
  // For two members when the other one has all micro-batches.
  ViewPointer view() const {
    pipeline::View view = *view_of(setting_.idle ? 2 : 1, options_.micro_batches);
    if (setting_.idle) view.owners.assign(view.owners.size(), 1);
    return std::make_shared<const pipeline::View>(std::move(view));
  }

  void note(Context& context, const std::string& line) {
    log.push_back(line);
    if (on_line) on_line(context, line);
  }

  Script coordinator() {
    Script script;
    script.start = [this](Context& context) {
      context.send_control("replica.0", Message::of(BeginTraining{state_}));
      context.send_control("reducer", Message::of(ViewMessage{view()}));
      context.after(60s);
    };
    script.timer = [](Context& context, runtime::TimerId) { context.finish(); };
    script.receive = [this](Context& context, const Message& message) {
      const auto* body = message.as<ReplicaEnd>();
      if (body == nullptr) return;
      report = *body;
      for (const runtime::ActorTrace& actor : play_.node().traces()) {
        if (actor.name == "replica.0") trace = actor.trace;
      }
      context.finish();
    };
    return script;
  }

  Message next_batch() {
    const std::uint64_t iteration = next_batch_ / options_.micro_batches;
    const auto micro_batch = static_cast<std::uint32_t>(next_batch_ % options_.micro_batches);
    const std::size_t events = options_.micro_batch;
    Buffer images = Buffer::allocate(events * 64 * sizeof(float));
    Buffer conditions = Buffer::allocate(3 * events * sizeof(float));
    Buffer ids = Buffer::zeroed(events * sizeof(std::uint64_t));
    const runtime::RandomPosition where{
        .seed = 5, .micro_batch = micro_batch, .iteration = static_cast<std::uint32_t>(iteration)};
    std::uint32_t number = 0;
    for (float& cell : images.mutable_as<float>()) {
      cell = static_cast<float>(runtime::random_uniform(where, number++));
    }
    for (float& value : conditions.mutable_as<float>()) {
      value = static_cast<float>(1.0 + runtime::random_uniform(where, number++));
    }
    return Message::of(BatchMessage{iteration, micro_batch, options_.micro_batch, feed_},
                       {images, conditions, ids});
  }

  void load(Context& context) {
    while (feed_ > 0 && !loaded_) {
      if (!told_end_) {
        told_end_ = context.send("batches", Message::of(EndOfData{setting_.iterations}));
        loaded_ = told_end_ && setting_.idle;
        if (!told_end_) return;
        continue;
      }
      if (may_load && !may_load(next_batch_ / options_.micro_batches)) {
        context.after(1ms);
        return;
      }
      Message message = next_batch();
      if (!context.send("batches", message)) return;
      ++batches_sent;
      loaded_ = ++next_batch_ == setting_.iterations * options_.micro_batches;
    }
  }

  Script loader() {
    Script script;
    script.receive = [this](Context& context, const Message& message) {
      const auto* feed = message.as<Feed>();
      ASSERT_NE(feed, nullptr);
      EXPECT_EQ(feed->iteration, 0U);
      EXPECT_TRUE(feed->missing.empty());
      feed_ = feed->number;
      load(context);
    };
    script.credit_returned = [this](Context& context, std::string_view) { load(context); };
    script.timer = [this](Context& context, runtime::TimerId) { load(context); };
    return script;
  }

  void contribution(Context& context, Message message) {
    if (const auto* bucket = message.as<BucketMessage>()) {
      EXPECT_EQ(bucket->view, kFirstView);
      note(context, fmt::format("bucket {}.{}", bucket->step, bucket->attempt));
      if (on_sums) {
        Buffer sums = Buffer::copy_of(message.payloads().front().bytes());
        on_sums(*bucket, sums);
        message = Message::of(BucketMessage(*bucket), {std::move(sums)});
      }
      context.send("reduced", message);
    } else if (message.as<ViewMessage>() != nullptr) {
      context.send("reduced", message);
    } else if (const auto* body = message.as<HeaderMessage>()) {
      EXPECT_EQ(body->view, kFirstView);
      pipeline::StepHeader header = body->header;
      note(context, fmt::format("header {}.{}", header.step, header.attempt));
      hashes[header.step] = header.state_minimum;
      EXPECT_EQ(header.state_minimum, header.state_maximum);
      if (on_header && !on_header(context, header)) return;
      headers_.push_back(std::move(header));
      context.after(kReduction);
    }
  }

  Script reducer() {
    Script script;
    script.receive = [this](Context& context, Message message) {
      contribution(context, std::move(message));
    };
    script.timer = [this](Context& context, runtime::TimerId) {
      const pipeline::StepHeader header = headers_.front();
      headers_.pop_front();
      note(context, fmt::format("answer {}.{}", header.step, header.attempt));
      context.send("reduced", Message::of(HeaderMessage{header}));
    };
    return script;
  }

  Setting setting_;
  Toy toy_;
  pipeline::TrainingOptions options_;
  StatePointer state_;
  std::uint32_t feed_ = 0;  // 0: none was asked for
  std::uint64_t next_batch_ = 0;
  bool told_end_ = false, loaded_ = false;
  std::deque<pipeline::StepHeader> headers_;
  Play play_;
};

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
  EXPECT_THAT(refusal(bucket(6, 0, 1)), HasSubstr("step 6 attempt 0 while step 7 is reduced"));
  EXPECT_THAT(refusal(bucket(7, 1, 1)), HasSubstr("step 7 attempt 1"));
  EXPECT_THAT(refusal(bucket(7, 0, 1 << 20)), HasSubstr("elements 1048575 to 1048576 of step 7"));
  EXPECT_THAT(refusal(bucket(7, 0, 0)), HasSubstr("elements -1 to 0 of step 7"));
  EXPECT_THAT(refusal(header(8, 0)), HasSubstr("the header of step 8 attempt 0 while step 7"));
  EXPECT_THAT(refusal(header(7, 1)), HasSubstr("the header of step 7 attempt 1"));
}

}  // namespace
}  // namespace troupe::actors
