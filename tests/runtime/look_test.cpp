// A running node may be looked at by anyone: also while it begins, ends and is given up.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/stage.h"

namespace troupe::runtime {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// Never stops, and has words of its own for what it waits for.
Script stubborn() {
  const auto words = std::make_shared<std::string>(100, 'x');
  Script script;
  script.start = [](Context& context) { context.after(milliseconds(1)); };
  script.timer = [](Context& context, TimerId) { context.after(milliseconds(1)); };
  script.stop = [](Context&) {};
  script.waiting_for = [words] { return *words; };
  return script;
}

void look_at(const Node& node) {
  (void)node.wait_for_graph();
  (void)node.link_stats();
  (void)node.actor_stats();
  (void)node.traces();
  (void)node.peer_stats();
}

TEST(Look, NodesMayBeLookedAtWhileTheyBeginAndAreGivenUp) {
  for (int round = 0; round < 30; ++round) {
    Stage stage;
    stage.options().trace_records = 16;
    stage.actor("root", "", stubborn());
    for (int i = 0; i < 20; ++i) stage.actor(std::to_string(i), "root", stubborn());
    stage.link("0", "1", 1);
    Node& node = stage.make_on_threads();
    std::atomic<bool> over{false};
    std::thread looker([&] {
      for (int i = 0; !over; ++i) {
        look_at(node);
        if (i == 3 || i == 4) node.request_stop();
      }
    });
    const NodeEnd end = node.run();
    over = true;
    looker.join();
    look_at(node);
    ASSERT_TRUE(end.error.has_value());
    EXPECT_THAT(end.error->message, HasSubstr("asked a second time to stop"));
    EXPECT_EQ(end.unstopped.size(), 21U);
    EXPECT_THAT(node.wait_for_graph(), HasSubstr("root"));
  }
}

}  // namespace
}  // namespace troupe::runtime
