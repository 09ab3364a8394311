// How the Provisioner goes about it: one thing at a time, and what it says of it.

#include "actors/provisioner.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/actors/theatre.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Message;
using runtime::Result;
using runtime::Script;
using runtime::TimePoint;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Nodes that are there as soon as they are asked for.
class ReadyLauncher final : public Launcher {
 public:
  std::string id_for(const std::string& name) override { return "at " + name; }
  Result<std::string> start(const NodeOrder& order) override {
    calls.push_back("start " + order.name);
    if (on_start) on_start();
    if (!fault.empty()) return runtime::Error{runtime::ErrorKind::kLostPeers, fault};
    there.insert(order.name);
    return "at " + order.name;
  }
  Result<std::vector<ListedNode>> list() override {
    std::vector<ListedNode> nodes;
    for (const std::string& name : there) nodes.push_back({name, "at " + name});
    return nodes;
  }
  Result<void> stop(const std::string& name, const std::string& id) override {
    calls.push_back("stop " + name + " " + id);
    if (stops) there.erase(name);
    return {};
  }

  std::vector<std::string> calls;
  std::set<std::string> there;
  std::string fault;
  std::function<void()> on_start;
  bool stops = true;
};

class ProvisionerTest : public testing::Test {
 protected:
  ProvisionerTest() {
    PoolTools::Pool pool;
    pool.limits = {"hpc", 3, 4, seconds(100)};
    pool.launcher = launcher_;
    options_.pools = {pool};
    config::PoolSection section;
    section.name = "hpc";
    section.most = 4;
    section.price_per_node_hour = 1.0;
    options_.treasurer.pools = {section};
    options_.treasurer.made.iterations = 1000;
    options_.treasurer.work.micro_batches = 8;
    options_.note_node = [this](const PoolNode& node) -> Result<void> {
      written_.push_back(node.name + " " + word_of(node.state) + " " + node.id);
      return {};
    };
    options_.note_wanted = [](const auto&, auto) { return Result<void>(); };
    options_.note_work = [](const auto&, const auto&) { return Result<void>(); };
    options_.token = [] { return Result<std::string>(""); };
    options_.launched_on = [](const std::string&) { return ""; };
  }
  // Until so many seconds are over; the log. `each`: what the coordinator does in each second.
  std::string play(int lasts, const std::function<void(Context&, int)>& each) {
    Script root;
    int second = 0;
    root.start = [](Context& context) { context.after(seconds(1)); };
    root.timer = [&](Context& context, runtime::TimerId) {
      context.post_progress();
      if (++second > lasts) return context.finish();
      if (each) each(context, second);
      context.after(seconds(1));
    };
    root.receive = [](Context&, const Message&) {};
    Play play;
    play.actor("coordinator", root).actor("monitor", Script{}).actor("provisioner", [&] {
      return std::make_unique<Provisioner>(options_, outcome_);
    });
    play.run(1);
    return play.log_lines();
  }

  std::shared_ptr<ReadyLauncher> launcher_ = std::make_shared<ReadyLauncher>();
  std::shared_ptr<RunOutcome> outcome_ = std::make_shared<RunOutcome>();
  std::vector<std::string> written_;
  ProvisionerOptions options_;
};

TEST_F(ProvisionerTest, IdIsWrittenDownBeforeTheNodeIsAskedFor) {
  std::vector<std::string> before;
  options_.token = [&] {
    before = written_;
    return Result<std::string>("");
  };
  options_.pools[0].limits.nodes = 1;
  play(2, {});
  EXPECT_THAT(before, ElementsAre("hpc.0 asked at hpc.0"));
}

TEST_F(ProvisionerTest, NoNodeIsAskedForAnyMoreWhenTheRunIsToEnd) {
  options_.pools[0].limits.nodes = 0;
  play(20, [](Context& context, int second) {
    if (second == 1) context.send_control("provisioner", Message::of(NoMoreNodes{}));
    if (second != 2) return;
    const auto answer = [](const auto& told) { EXPECT_EQ(told.error().message, "the run ends"); };
    context.send_control("provisioner", Message::of(runtime::RequestAsked{
                                            {runtime::HeadRequest::Kind::kBurst, "hpc", "4"},
                                            "somebody",
                                            std::make_shared<runtime::RequestReply>(answer)}));
  });
  EXPECT_THAT(launcher_->calls, testing::IsEmpty());
}

// Nodes that are there cost something until they end.
TEST_F(ProvisionerTest, BillIsToldUntilTheLastMomentAlthoughNoNodeIsAskedForAnyMore) {
  int bills = 0;
  Script root, monitor;
  root.start = [](Context& context) {
    context.send_control("provisioner", Message::of(NoMoreNodes{}));
    context.after(seconds(35));
  };
  root.timer = [](Context& context, runtime::TimerId) { context.finish(); };
  monitor.receive = [&](Context&, const Message& message) {
    if (message.as<EventMetrics>() != nullptr) ++bills;
  };
  Play play;
  play.actor("coordinator", root).actor("monitor", monitor).actor("provisioner", [&] {
    return std::make_unique<Provisioner>(options_, outcome_);
  });
  play.run(1);
  EXPECT_GE(bills, 3);
}

// It comes while the tool is asked for the first one.
TEST_F(ProvisionerTest, WordOfTheEndIsHeardBetweenTwoNodes) {
  options_.pools[0].limits.nodes = 4;
  Script root;
  root.start = [](Context& context) { context.after(seconds(30)); };
  root.timer = [](Context& context, runtime::TimerId) { context.finish(); };
  Play play;
  play.actor("coordinator", root).actor("monitor", Script{}).actor("provisioner", [&] {
    return std::make_unique<Provisioner>(options_, outcome_);
  });
  launcher_->on_start = [&] {
    play.node().send_control("provisioner", Message::of(NoMoreNodes{}));
  };
  play.run(1);
  EXPECT_THAT(launcher_->calls, ElementsAre("start hpc.0", "stop hpc.0 at hpc.0"));
}

TEST_F(ProvisionerTest, NodeWhoseStartFailedIsStoppedByTheIdThatIsKnown) {
  launcher_->fault = "the connection broke";
  options_.pools[0].limits.nodes = 1;
  const std::string log = play(3, {});
  EXPECT_THAT(launcher_->calls, ElementsAre("start hpc.0", "stop hpc.0 at hpc.0"));
  EXPECT_THAT(log,
              HasSubstr("hpc.0 could not be started: the connection broke; it may be there, and "
                        "is stopped"));
}

TEST_F(ProvisionerTest, EndSaysWhichNodesItWaitsFor) {
  launcher_->stops = false;
  EXPECT_THAT(play(5, {}), testing::ContainsRegex(
                               "the run is over, and waits 1[01][0-9] s more for its nodes to "
                               "end: hpc.0 .at hpc.0. is stopping, hpc.1 .at hpc.1. is "
                               "stopping, hpc.2 .at hpc.2. is stopping\n"));
  launcher_->stops = true;
  EXPECT_THAT(play(5, {}), Not(HasSubstr("the run is over, and waits")));
}

TEST_F(ProvisionerTest, NodesThatAreLeftAreToldEveryTenSeconds) {
  PoolWaits waits;
  int second = 0;
  Script root;
  root.start = [](Context& context) { context.after(seconds(1)); };
  root.timer = [&](Context& context, runtime::TimerId) {
    context.post_progress();
    std::vector<PoolNode> left(20, {"own.7", "own", PoolNodeState::kStopping, "vm"});
    waits.tell_last(context, left, TimePoint(seconds(120)));
    if (++second == 35) return context.finish();
    context.after(seconds(1));
  };
  Play play;
  play.actor("coordinator", root);
  play.run(1);
  std::string told = play.log_lines();
  EXPECT_THAT(told, HasSubstr("own.7 (vm) is stopping, 12 more\n"));
  EXPECT_EQ(std::ranges::count(told, '\n'), 3) << told;
}

// Half the iterations at the measured pace take longer than the deadline.
TEST_F(ProvisionerTest, DeadlineThatCannotBeKeptIsToldOnceAlthoughNothingChanges) {
  options_.treasurer.limits = {.finish_within = 500.0, .decide_every = 10.0};
  options_.pools[0].limits = {"hpc", 0, 1, seconds(100)};
  options_.treasurer.pools[0].most = 1;
  options_.treasurer.others_come = true;
  const std::string log = play(60, [](Context& context, int second) {
    if (second > 1) return;
    auto view = std::make_shared<pipeline::View>();
    view->ring = {0};
    view->owners.assign(8, 0);
    context.send_control("provisioner", Message::of(ViewMessage{view}));
    for (std::uint64_t told = 1; told <= 2; ++told) {
      context.send_control("provisioner", Message::of(Pace{0, 10 * told, 80, 80.0}));
    }
  });
  const std::string words = "cluster.burst.finish_within cannot be kept: ";
  const std::size_t first = log.find(words);
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find(words, first + 1), std::string::npos) << log;
  EXPECT_THAT(log, HasSubstr("which is too late"));
}

}  // namespace
}  // namespace troupe::actors
