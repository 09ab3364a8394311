#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "actors/replica.h"
#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Message;
using runtime::Script;

// It would contribute to an iteration that the others do not make, if the end came late.
TEST(Replica, WithoutMicroBatchesBeginsNothingBeforeItKnowsTheEnd) {
  Toy toy;
  int contributions = 0;
  Play play;
  Script root;
  root.start = [&](Context& context) {
    context.send_control("replica.0", Message::of(BeginTraining{toy.state(0)}));
    context.after(std::chrono::seconds(1));
  };
  root.timer = [](Context& context, runtime::TimerId) { context.finish(); };
  Script reducer;
  reducer.receive = [&](Context&, const Message&) { ++contributions; };
  play.actor("coordinator", root).actor("reducer", reducer).actor("replica.0", [&] {
    ReplicaOptions options;
    options.micro_batches = 0;
    return std::make_unique<Replica>(options, toy.context());
  });
  play.link("replica.0", "contributions", "reducer", "contributions");
  const runtime::NodeEnd end = play.run(1);
  EXPECT_FALSE(end.error) << end.error->message;
  EXPECT_EQ(contributions, 0);
}

// As long as others still train, or the last state is saved, its loader would take their
// processors.
TEST(Replica, ThatHasEndedLetsItsLoaderReadNoMore) {
  constexpr std::int64_t kCredits = 8;  // of the play's links
  Toy toy;
  std::int64_t batches = 0;
  bool ended = false;
  Play play;
  Script root;
  root.start = [&](Context& context) {
    context.send_control("replica.0", Message::of(BeginTraining{toy.state(0)}));
    context.after(std::chrono::seconds(1));
    context.after(std::chrono::seconds(2));
  };
  root.timer = [first = true](Context& context, runtime::TimerId) mutable {
    if (!std::exchange(first, false)) return context.finish();
    context.send_control("replica.0", Message::of(StopTraining{}));
  };
  root.receive = [&](Context&, const Message& message) {
    ended |= message.as<ReplicaEnd>() != nullptr;
  };
  Script loader;
  loader.start = [](Context& context) { context.after(std::chrono::milliseconds(10)); };
  loader.timer = [&](Context& context, runtime::TimerId) {
    if (context.send("batches", Message::of(BatchMessage{}))) ++batches;
    context.after(std::chrono::milliseconds(10));
  };
  Script reducer;
  play.actor("coordinator", root).actor("reducer", reducer).actor("loader", loader);
  play.actor("replica.0", [&] {
    ReplicaOptions options;
    options.micro_batches = 12;  // more than there are credits, so that it does not look at them
    return std::make_unique<Replica>(options, toy.context());
  });
  play.link("replica.0", "contributions", "reducer", "contributions");
  play.link("loader", "batches", "replica.0", "batches");
  const runtime::NodeEnd end = play.run(1);
  EXPECT_FALSE(end.error) << end.error->message;
  EXPECT_TRUE(ended);
  EXPECT_EQ(batches, kCredits);
}

}  // namespace
}  // namespace troupe::actors
