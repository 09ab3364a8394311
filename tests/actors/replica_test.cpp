#include <gtest/gtest.h>

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

}  // namespace
}  // namespace troupe::actors
