// `troupe pools --stop` ends nodes that a dead run has left, those of a made cloud of processes.

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "tests/main/pool_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

class PoolsStop : public PoolRun {};

TEST_F(PoolsStop, WhatIsLeftOfADeadRunIsStoppedByHand) {
  Process all(command(endless(cloud_pool(2))));
  ASSERT_TRUE(wait_until(all, "own", 2, "running")) << log();
  const ProcessEnd refused = call({"pools", path("a"), "--stop"});
  EXPECT_EQ(refused.exit_code, 2) << "the run goes on";
  kill_whole(all);
  EXPECT_NE(process_with("--launched own.0@"), 0);
  EXPECT_THAT(pools({"--stop"}), Not(HasSubstr("running")));
  EXPECT_TRUE(all_gone());
}

TEST_F(PoolsStop, NodeThatCannotBeStoppedDoesNotCountAsEnded) {
  Words words = cloud_pool(2);
  const std::size_t list = words.back().find(", list: ");
  words.back().replace(list, std::string::npos, "}]");
  Process all(command(endless(words)));
  ASSERT_TRUE(wait_until(all, "own", 2, "running")) << log();
  kill_whole(all);
  write_text(path("cloud/stuck"), "");
  const ProcessEnd stuck = call({"pools", path("a"), "--stop", "--json"});
  EXPECT_EQ(stuck.exit_code, 5);
  EXPECT_THAT(stuck.err, HasSubstr("own.0 of pool own is still there, and could not be told to "
                                   "end: "));
  EXPECT_THAT(stuck.err, HasSubstr("made_cloud: try again later"));
  const JsonValue told = last_line(stuck);
  EXPECT_EQ(told["exit_code"].integer(), 5);
  for (const JsonValue& node : told["nodes"].list()) EXPECT_EQ(node["state"].text(), "running");
  std::filesystem::remove(path("cloud/stuck"));
  EXPECT_THAT(pools({"--stop"}), Not(HasSubstr("running")));
  EXPECT_TRUE(all_gone());
}

// Two pools of the made cloud, whose nodes are own.0, own.1, far.0 and far.1.
TEST_F(PoolsStop, EachNodeThatCannotBeStoppedIsNamedAndTheOthersEnd) {
  const std::string cloud = fmt::format("{} {}", TROUPE_MADE_CLOUD, path("cloud"));
  const auto pool = [&](const std::string& name) {
    return fmt::format(
        "{{name: {}, launcher: command, nodes: 2, start: '{} up {{name}} {{join}}', stop: '{} down "
        "{{name}}'}}",
        name, cloud, cloud);
  };
  Process all(command(
      endless(listening() +
              Words{"--set", fmt::format("cluster.pools=[{}, {}]", pool("own"), pool("far"))})));
  ASSERT_TRUE(wait_until(all, "own", 2, "running")) << log();
  ASSERT_TRUE(wait_until(all, "far", 2, "running")) << log();
  kill_whole(all);
  const Words faulty{"own.0", "own.1", "far.1"};
  for (const std::string& node : faulty) write_text(path("cloud/stuck." + node), "");
  const ProcessEnd some = call({"pools", path("a"), "--stop", "--json"});
  EXPECT_EQ(some.exit_code, 5);
  EXPECT_THAT(some.err, HasSubstr("far.0 (vm-troupe-"));
  const JsonValue told = last_line(some);
  for (const std::string& node : faulty) {
    EXPECT_THAT(told["error"].text(), testing::ContainsRegex(fmt::format(
                                          "{} of pool {} is still there, and could not be "
                                          "told to end: [^;]*made_cloud: {} is being moved",
                                          node, node.substr(0, 3), node)));
    EXPECT_THAT(some.err, Not(HasSubstr(node + " (vm-troupe-")));
  }
  for (const JsonValue& node : told["nodes"].list()) {
    EXPECT_EQ(node["state"].text(), node["name"].text() == "far.0" ? "ended" : "running");
  }
  for (const std::string& node : faulty) std::filesystem::remove(path("cloud/stuck." + node));
  const ProcessEnd rest = call({"pools", path("a"), "--stop"});
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.err, Not(HasSubstr("far.0"))) << "it has ended";
  EXPECT_THAT(rest.out, Not(HasSubstr("running")));
  EXPECT_TRUE(all_gone());
}

// With a list it counts what is there, not which commands have failed.
TEST_F(PoolsStop, NodesThatCannotBeStoppedAndEndAllTheSameAreGone) {
  Process all(command(endless(cloud_pool(3))));
  ASSERT_TRUE(wait_until(all, "own", 3, "running")) << log();
  kill_whole(all);
  const Words faulty{"own.0", "own.2"};
  for (const std::string& node : faulty) write_text(path("cloud/stuck." + node), "");
  Process stopping(command({"pools", path("a"), "--stop"}));
  ASSERT_TRUE(wait_for([&] { return process_with("--launched own.1@") == 0; }));
  for (const std::string& node : faulty) {
    const pid_t left = process_with(fmt::format("--launched {}@", node));
    if (left != 0) ::kill(left, SIGKILL);
  }
  const ProcessEnd stopped = stopping.wait();
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("own.1 (vm-troupe-"));
  for (const std::string& node : faulty) {
    EXPECT_THAT(stopped.err, Not(HasSubstr(node + " (vm-troupe-"))) << "it could not be told";
  }
  EXPECT_THAT(stopped.out, Not(HasSubstr("running")));
  EXPECT_TRUE(all_gone());
}

TEST_F(PoolsStop, FolderThatHoldsNoRunHasNoPools) {
  std::filesystem::create_directories(path("empty"));
  for (const Words& more : {Words{}, Words{"--stop"}}) {
    expect_refused(call(Words{"pools", path("empty")} + more), 2, {"empty is no run's folder"});
    expect_refused(call(Words{"pools", path("none")} + more), 2, {"none is no run's folder"});
  }
  EXPECT_EQ(last_line(call({"pools", path("none"), "--json"}))["exit_code"].integer(), 2);
}

}  // namespace
}  // namespace troupe
