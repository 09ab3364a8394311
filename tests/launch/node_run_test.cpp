#include "launch/run/node_run.h"

#include <gtest/gtest.h>

#include "tests/runtime/stage.h"

namespace troupe::launch {
namespace {

using runtime::Context;
using runtime::Message;
using runtime::Number;
using runtime::Script;

TEST(NodeSampler, TellsOfTheProcessTheActorsAndTheLinksThatAreUsed) {
  telemetry::NodeSample within;
  runtime::Stage stage;
  Script receiver;
  receiver.receive = [&, left = 3](Context& context, const Message&) mutable {
    if (left == 3) within = sample_node("local", stage.node());
    if (--left == 0) context.finish();
  };
  stage.actor("root", "", runtime::root_of(2));
  stage.actor("sender", "root", runtime::counting_sender(3));
  stage.actor("receiver", "root", receiver).link("sender", "receiver", 8);
  stage.link("receiver", "sender", 4);
  (void)sample_node("local", stage.make_in_steps(1));
  ASSERT_FALSE(stage.node().run().error.has_value());
  EXPECT_EQ(within.node, "local");
  EXPECT_GT(within.cpu_seconds, 0.0);
  EXPECT_GT(within.resident_bytes, 1 << 20);
  ASSERT_EQ(within.actors.size(), 3U);
  EXPECT_EQ(within.actors[2].name, "receiver");
  EXPECT_EQ(within.actors[2].state, "running");
  ASSERT_EQ(within.links.size(), 1U) << "the other one was not used";
  EXPECT_EQ(within.links[0].from, "sender");
  EXPECT_EQ(within.links[0].to, "receiver");
  EXPECT_EQ(within.links[0].port, "in");
  EXPECT_EQ(within.links[0].credits, 8);
  EXPECT_GT(within.links[0].sent, 0);
  const telemetry::NodeSample after = sample_node("local", stage.node());
  EXPECT_EQ(after.actors[2].state, "ended");
  EXPECT_EQ(after.links[0].sent, 3);
  EXPECT_GE(after.cpu_seconds, within.cpu_seconds);
}

}  // namespace
}  // namespace troupe::launch
