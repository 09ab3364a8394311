// What actors make of messages that their own peers would not send: another node may say anything.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "actors/coordinator.h"
#include "actors/monitor.h"
#include "actors/reducer.h"
#include "tests/actors/theatre.h"
#include "tests/pipeline/data_fixture.h"

namespace troupe::actors {
namespace {

using runtime::Buffer;
using runtime::Context;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Message;
using runtime::NodeEnd;
using runtime::Script;
using testing::HasSubstr;

using Contributions = std::vector<std::function<Message()>>;

std::function<Message()> bucket(std::uint32_t number, std::int64_t begin, std::int64_t end) {
  return [=] {
    return Message::of(BucketMessage{0, 0, number, begin, end},
                       {Buffer::zeroed(static_cast<std::size_t>(end - begin) * 8)});
  };
}

std::function<Message()> header(std::size_t tensors, std::uint32_t micro_batches) {
  return [=] {
    HeaderMessage message;
    message.header.exponents.resize(tensors);
    message.header.micro_batches = micro_batches;
    return Message::of(std::move(message));
  };
}

// A Reducer for two replicas that contribute this.
NodeEnd reduce(const Contributions& first, const Contributions& second) {
  Play play;
  Script root;
  play.actor("coordinator", root);
  play.actor("reducer", [] { return std::make_unique<Reducer>(ReducerOptions{2, 2}); });
  const Contributions* all[] = {&first, &second};
  for (int i = 0; i < 2; ++i) {
    Script replica;
    replica.start = [contributions = *all[i]](Context& context) {
      for (const auto& make : contributions) context.send("contributions", make());
    };
    replica.receive = [](Context& context, const Message& message) {
      if (message.as<HeaderMessage>() != nullptr) {
        context.fail({ErrorKind::kDiverged, "a header came"});
      }
    };
    const std::string name = "replica." + std::to_string(i);
    play.actor(name, replica);
    play.link(name, "contributions", "reducer", "contributions");
    // Not in the data lane, where the circle would need a token.
    play.link("reducer", "reduced." + std::to_string(i), name, "reduced", runtime::Lane::kControl);
  }
  return play.run(1);
}

void expect_refused(const NodeEnd& end, const std::string& what) {
  ASSERT_TRUE(end.error);
  EXPECT_EQ(end.error->kind, ErrorKind::kLostPeers) << end.error->message;
  EXPECT_THAT(end.error->message, HasSubstr(what));
}

TEST(ForeignMessage, ContributionsThatFitAreReduced) {
  const NodeEnd end = reduce({bucket(0, 4, 8), bucket(1, 0, 4), header(3, 1)},
                             {bucket(0, 4, 8), bucket(1, 0, 4), header(3, 1)});
  ASSERT_TRUE(end.error);
  EXPECT_THAT(end.error->message, HasSubstr("a header came"));
}

TEST(ForeignMessage, HeaderWithoutAllBucketsEndsTheRunInsteadOfMakingAStepOfNothing) {
  expect_refused(
      reduce({bucket(0, 4, 8), bucket(1, 0, 4), header(3, 1)}, {bucket(0, 4, 8), header(3, 1)}),
      "while buckets are missing");
}

TEST(ForeignMessage, BucketOutOfOrderIsRefusedBeforeMemoryIsTakenForThoseBefore) {
  expect_refused(reduce({bucket(1U << 19, 0, 1)}, {}), "replica.0 contributed bucket 524288");
}

TEST(ForeignMessage, BucketsCutOtherwiseAreRefused) {
  expect_refused(reduce({bucket(0, 0, 8)}, {bucket(0, 0, 4)}), "bucket 0 cut otherwise");
}

TEST(ForeignMessage, HeadersOfOtherTensorsAreRefused) {
  expect_refused(reduce({bucket(0, 0, 8), header(3, 1)}, {bucket(0, 0, 8), header(2, 1)}),
                 "tensors");
}

TEST(ForeignMessage, StepThatIsNoneOfTheScheduleLeavesNoMetrics) {
  const pipeline::TemporaryFolder folder;
  Toy toy;
  MonitorOptions options;
  options.metrics_path = folder / "metrics.jsonl";
  options.losses = toy.topology().model.gan.losses;
  options.schedule = toy.context().options.schedule;
  Play play;
  Script root;
  root.start = [&](Context& context) {
    for (const bool right : {false, true}) {
      StepMetrics step;
      step.step = right ? 7 : 6;
      step.slot = right ? 0 : 4'000'000'000;
      step.losses.resize(options.losses.size());
      context.send("metrics", Message::of(StepMetrics(step)));
      step.slot = 0;
      step.step = 6;
      step.losses.resize(256);
      context.send("metrics", Message::of(StepMetrics(step)));
    }
    context.after(std::chrono::seconds(2));
  };
  root.timer = [](Context& context, runtime::TimerId) {
    context.send_control("monitor", Message::of(FinishMetrics{}));
  };
  root.receive = [](Context& context, const Message&) { context.finish(); };
  play.actor("coordinator", root);
  play.actor("monitor", [&] { return std::make_unique<Monitor>(options); });
  play.link("coordinator", "metrics", "monitor", "metrics", runtime::Lane::kMetrics);
  const NodeEnd end = play.run(1);
  EXPECT_FALSE(end.error) << end.error->message;
  std::ostringstream metrics;
  metrics << std::ifstream(options.metrics_path).rdbuf();
  const std::string text = metrics.str();
  EXPECT_THAT(text, HasSubstr("\"step\":7"));
  EXPECT_THAT(text, testing::Not(HasSubstr("\"step\":6")));
}

// A replica on another node that failed reports nothing any more: the run must not wait for it.
TEST(ForeignMessage, ReplicaThatFailedElsewhereEndsTheRunWithWhatTheOthersHave) {
  Toy toy;
  auto outcome = std::make_shared<RunOutcome>();
  Play play;
  play.actor("coordinator", [&] {
    CoordinatorOptions options;
    options.state = toy.state(0);
    options.loaders = {};
    options.replica_nodes = {"", ""};
    options.validate = false;
    return std::make_unique<Coordinator>(options, outcome);
  });
  Script survivor;
  survivor.receive = [&](Context& context, const Message& message) {
    if (message.as<StopTraining>() == nullptr) return;
    ReplicaEnd end;
    end.state = toy.state(3);
    context.send_control("coordinator", Message::of(std::move(end)));
  };
  Script failing;
  failing.receive = [](Context& context, const Message& message) {
    if (message.as<BeginTraining>() == nullptr) return;
    context.send_control(
        "coordinator", Message::of(MemberFailed{"replica.1", {ErrorKind::kInternal, "it broke"}}));
  };
  Script answering;
  answering.receive = [](Context& context, Message message) {
    if (message.as<FinishMetrics>() != nullptr && context.name() == "checkpointer") {
      context.send_control("monitor", std::move(message));
    } else if (message.as<LastState>() != nullptr || message.as<FinishMetrics>() != nullptr) {
      context.send_control("coordinator", Message::of(LastStateDone{}));
    }
  };
  play.actor("replica.0", survivor).actor("replica.1", failing);
  play.actor("checkpointer", answering).actor("monitor", answering);
  const NodeEnd end = play.run(1);
  ASSERT_TRUE(end.error);
  EXPECT_THAT(end.error->message, HasSubstr("it broke"));
  EXPECT_TRUE(outcome->saved);
  ASSERT_NE(outcome->state, nullptr);
  EXPECT_EQ(outcome->state->iteration, 3U);
}

}  // namespace
}  // namespace troupe::actors
