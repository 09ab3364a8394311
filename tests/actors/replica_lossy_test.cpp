// Replicas of a lossy run: what they contribute and apply are floats.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/reducer.h"
#include "actors/replica.h"
#include "runtime/base/random.h"
#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using pipeline::ReductionFormat;
using runtime::Buffer;
using runtime::Context;
using runtime::Message;
using runtime::Script;
using testing::HasSubstr;

constexpr std::uint64_t kIterations = 3;

std::string name(const char* kind, std::uint32_t number) {
  return fmt::format("{}.{}", kind, number);
}

// The toy over members of one replica each, between loaders and a coordinator that are scripts.
class Rehearsal {
 public:
  Rehearsal(std::optional<ReductionFormat> lossy, std::uint32_t members)
      : reports(members), members_(members) {
    options_ = toy_.context().options;
    options_.lossy = lossy;
    state_ = std::make_shared<const pipeline::TrainingState>(
        pipeline::initial_state(toy_.context().gan, options_, "test", {}));
  }

  void run(std::uint64_t seed) {
    Play play;
    play.actor("coordinator", coordinator());
    for (std::uint32_t i = 0; i < members_; ++i) {
      play.actor(name("replica", i), [this, i] {
        return std::make_unique<Replica>(
            replica_options(i),
            TrainingContext{toy_.context().gan, toy_.context().backend, options_});
      });
      play.actor(name("loader", i), loader(i));
      if (reducer) {
        play.actor(name("reducer", i), *reducer);
      } else {
        play.actor(name("reducer", i),
                   [this, i] { return std::make_unique<Reducer>(reducer_options(i)); });
      }
    }
    link(play);
    end = play.run(seed);
  }

  // Of the state that this member has come to.
  runtime::Hash128 hash(std::uint32_t member) const {
    return pipeline::hash_of_state(*reports[member].state);
  }
  const pipeline::TrainingState& initial() const { return *state_; }

  std::optional<Script> reducer;    // instead of real ones
  std::vector<ReplicaEnd> reports;  // of each member
  runtime::NodeEnd end;

 private:
  static constexpr auto kData = runtime::Lane::kData;

  ReplicaOptions replica_options(std::uint32_t member) const {
    ReplicaOptions options;
    options.replica = member;
    options.loader = name("loader", member);
    return options;
  }

  ReducerOptions reducer_options(std::uint32_t member) const {
    ReducerOptions options;
    options.first_replica = member;
    options.micro_batches = options_.micro_batches;
    options.events = std::uint64_t{options_.micro_batches} * options_.micro_batch;
    options.member = member;
    options.lossy = options_.lossy;
    options.slot_floats.clear();
    for (const model::SlotKind slot : options_.schedule) {
      const auto layout =
          pipeline::sum_layout(toy_.context().gan.contributions(slot), options_.lossy);
      options.slot_floats.push_back(static_cast<std::size_t>(layout.floats));
    }
    return options;
  }

  void link(Play& play) const {
    for (std::uint32_t i = 0; i < members_; ++i) {
      play.link(name("loader", i), "batches", name("replica", i), "batches", kData, 16);
      play.link(name("replica", i), "contributions", name("reducer", i), "contributions");
      play.link(name("reducer", i), name("reduced", i), name("replica", i), "reduced", kData, 8, 1);
    }
    play.link_reducers(members_);
  }

  Script coordinator() {
    Script script;
    script.start = [this](Context& context) {
      const ViewPointer view = view_of(members_, options_.micro_batches);
      for (std::uint32_t i = 0; i < members_; ++i) {
        context.send_control(name("replica", i), Message::of(BeginTraining{state_}));
        context.send_control(name("reducer", i), Message::of(ViewMessage{view}));
      }
    };
    script.receive = [this, ended = 0U](Context& context, const Message& message) mutable {
      const auto* report = message.as<ReplicaEnd>();
      if (report == nullptr) return;
      reports[report->replica] = *report;
      if (++ended == members_) context.finish();
    };
    return script;
  }

  // Of the first feed all of a replica's micro-batches, then the end; of none the end at once.
  Script loader(std::uint32_t replica) {
    std::vector<BatchMessage> batches;
    for (std::uint64_t iteration = 0; iteration < kIterations; ++iteration) {
      for (std::uint32_t m = replica; m < options_.micro_batches; m += members_) {
        batches.push_back({iteration, m, options_.micro_batch, 1});
      }
    }
    const auto next = std::make_shared<std::size_t>(0);
    const auto load = [batches, next](Context& context) {
      for (; *next < batches.size(); ++*next) {
        if (!context.send("batches", batch(batches[*next]))) return;
      }
      const bool rest = *next == batches.size();
      if (rest && context.send("batches", Message::of(EndOfData{kIterations}))) ++*next;
    };
    Script script;
    script.receive = [load](Context& context, const Message& message) {
      ASSERT_NE(message.as<Feed>(), nullptr);
      EXPECT_EQ(message.as<Feed>()->number, 1U);
      load(context);
    };
    script.credit_returned = [load](Context& context, std::string_view) { load(context); };
    return script;
  }

  static Message batch(const BatchMessage& body) {
    const std::size_t events = body.events;
    Buffer images = Buffer::allocate(events * 64 * sizeof(float));
    Buffer conditions = Buffer::allocate(3 * events * sizeof(float));
    const runtime::RandomPosition where{.seed = 5,
                                        .micro_batch = body.micro_batch,
                                        .iteration = static_cast<std::uint32_t>(body.iteration)};
    std::uint32_t number = 0;
    for (float& cell : images.mutable_as<float>()) {
      cell = static_cast<float>(runtime::random_uniform(where, number++));
    }
    for (float& value : conditions.mutable_as<float>()) {
      value = static_cast<float>(1.0 + runtime::random_uniform(where, number++));
    }
    return Message::of(BatchMessage(body),
                       {images, conditions, Buffer::zeroed(events * sizeof(std::uint64_t))});
  }

  Toy toy_;
  const std::uint32_t members_;
  pipeline::TrainingOptions options_;
  StatePointer state_;
};

// And after every step: a header of members whose states differ ends the run.
TEST(ReplicaLossy, MembersOfARingEndInTheSameBitsInEveryFormat) {
  for (const auto format :
       {ReductionFormat::kFp32, ReductionFormat::kBf16, ReductionFormat::kInt8}) {
    for (const std::uint32_t members : {2U, 3U, 5U}) {
      Rehearsal first(format, members), second(format, members);
      first.run(1);
      second.run(2);
      ASSERT_FALSE(first.end.error) << first.end.error->message;
      for (std::uint32_t i = 0; i < members; ++i) {
        ASSERT_FALSE(first.reports[i].error) << first.reports[i].error->message;
        EXPECT_EQ(first.reports[i].state->iteration, kIterations);
        EXPECT_EQ(first.hash(i), first.hash(0)) << members << " members";
        EXPECT_EQ(second.hash(i), first.hash(0)) << members << " members, in another order";
      }
      EXPECT_NE(first.reports[0].state->generator.weights, first.initial().generator.weights);
    }
  }
}

TEST(ReplicaLossy, FormatsAndTheExactReductionEachGiveBitsOfTheirOwn) {
  std::vector<runtime::Hash128> hashes;
  for (const std::optional<ReductionFormat> format : {std::optional<ReductionFormat>(),
                                                      {ReductionFormat::kFp32},
                                                      {ReductionFormat::kBf16},
                                                      {ReductionFormat::kInt8}}) {
    Rehearsal rehearsal(format, 3);
    rehearsal.run(1);
    ASSERT_FALSE(rehearsal.end.error) << rehearsal.end.error->message;
    EXPECT_THAT(hashes, testing::Not(testing::Contains(rehearsal.hash(0))));
    hashes.push_back(rehearsal.hash(0));
  }
}

// Gives everything back as the sum, and of step 5 a sum that the format could not hold.
Script overflowing_reducer() {
  Script script;
  script.receive = [](Context& context, Message message) {
    const auto* bucket = message.as<BucketMessage>();
    if (bucket == nullptr || !bucket->floats || bucket->step != 5) {
      context.send("reduced.0", std::move(message));
      return;
    }
    const BucketMessage body = *bucket;
    Buffer sums = Buffer::copy_of(message.payloads().front().bytes());
    sums.mutable_as<float>()[0] = std::numeric_limits<float>::infinity();
    context.send("reduced.0", Message::of(BucketMessage(body), {std::move(sums)}));
  };
  return script;
}

TEST(ReplicaLossy, SumBeyondTheFormatEndsTheRunBeforeItIsApplied) {
  Rehearsal rehearsal(ReductionFormat::kBf16, 1);
  rehearsal.reducer = overflowing_reducer();
  rehearsal.run(1);
  const ReplicaEnd& report = rehearsal.reports[0];
  ASSERT_TRUE(report.error);
  EXPECT_EQ(report.error->kind, runtime::ErrorKind::kDiverged);
  EXPECT_THAT(report.error->message, HasSubstr("step 5: the sum of discriminator/"));
  EXPECT_THAT(report.error->message, HasSubstr("too large for the optimiser or the format"));
  EXPECT_EQ(report.state->step(4), 5U);
  EXPECT_EQ(report.last_step->step, 4U);
}

}  // namespace
}  // namespace troupe::actors
