#include "runtime/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace troupe::runtime {
namespace {

using ::testing::HasSubstr;

LinkPlan link(const std::string& from, const std::string& to) {
  LinkPlan plan;
  plan.from = from;
  plan.from_port = to;
  plan.to = to;
  plan.to_port = "in";
  return plan;
}

// root owns a, b and c; a -> b -> c.
Plan good_plan() {
  Plan plan;
  plan.actors = {{"root", "group", "", false},
                 {"a", "loader", "root", true},
                 {"b", "replica", "root", true},
                 {"c", "reducer", "b", false}};
  plan.links = {link("a", "b"), link("b", "c")};
  return plan;
}

struct Case {
  const char* what;
  std::function<void(Plan&)> spoil;
  std::vector<std::string> complaints;  // a part of each error, in order
};

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {"nothing", [](Plan&) {}, {}},
      {"no actors", [](Plan& p) { p = {}; }, {"no actors"}},
      {"empty name",
       [](Plan& p) {
         p.actors.push_back({"", "monitor", "root", false});
       },
       {"an actor of kind 'monitor' has no name"}},
      {"repeated name",
       [](Plan& p) {
         p.actors.push_back({"a", "x", "root", false});
       },
       {"two actors are named 'a'"}},
      {"unknown owner",
       [](Plan& p) { p.actors[1].owner = std::string("nobody"); },
       {"'a' is owned by 'nobody', which does not exist"}},
      {"two roots", [](Plan& p) { p.actors[1].owner = std::string(""); }, {"root, a have none"}},
      {"owners in a circle",
       [](Plan& p) { p.actors[2].owner = std::string("c"); },
       {"'b' is among its own owners", "'c' is among its own owners"}},
      {"no root",
       [](Plan& p) { p.actors[0].owner = std::string("root"); },
       {"'root' is among its own owners", "one must have none"}},
      {"unknown sender", [](Plan& p) { p.links[0].from = std::string("x"); }, {"names 'x'"}},
      {"unknown receiver", [](Plan& p) { p.links[0].to = std::string("x"); }, {"names 'x'"}},
      {"empty port", [](Plan& p) { p.links[0].to_port = std::string(""); }, {"lacks a port name"}},
      {"one port, two links",
       [](Plan& p) { p.links.push_back(p.links[0]); },
       {"a.b -> b.in leaves a port that another link leaves too"}},
      {"no message credits",
       [](Plan& p) { p.links[1].message_credits = 0; },
       {"b.c -> c.in has 0 message credits"}},
      {"negative byte credits",
       [](Plan& p) { p.links[1].byte_credits = -5; },
       {"has -5 byte credits"}},
      {"negative tokens", [](Plan& p) { p.links[1].tokens = -1; }, {"has -1 tokens"}},
      {"a circle",
       [](Plan& p) { p.links.push_back(link("c", "a")); },
       {"the actors a -> b -> c -> a wait for each other"}},
      {"a circle of one",
       [](Plan& p) { p.links.push_back(link("b", "b")); },
       {"the actors b -> b wait for each other"}},
      {"two circles",
       [](Plan& p) {
         p.links.push_back(link("b", "a"));
         p.links.push_back(link("c", "c"));
       },
       {"c -> c", "a -> b -> a"}},
      {"a circle with a token",
       [](Plan& p) {
         p.links.push_back(link("c", "a"));
         p.links.back().tokens = 1;
       },
       {}},
      {"a circle over the metrics lane",
       [](Plan& p) {
         p.links.push_back(link("c", "a"));
         p.links.back().lane = Lane::kMetrics;
       },
       {}},
      {"everything at once",
       [](Plan& p) {
         p.actors[1].owner = std::string("nobody");
         p.links[0].message_credits = 0;
         p.links.push_back(link("c", "a"));
       },
       {"'nobody'", "0 message credits", "a -> b -> c -> a"}},
  };
  return kCases;
}

void expect_complaints(const Plan& plan, const std::vector<std::string>& complaints) {
  const std::vector<Error> errors = check(plan);
  ASSERT_EQ(errors.size(), complaints.size()) << (errors.empty() ? "" : errors.front().message);
  for (std::size_t i = 0; i < errors.size(); ++i) {
    EXPECT_EQ(errors[i].kind, ErrorKind::kTopology);
    EXPECT_THAT(errors[i].message, HasSubstr(complaints[i]));
  }
}

TEST(Plan, CheckNamesEveryReasonNotToRun) {
  for (const Case& item : cases()) {
    SCOPED_TRACE(item.what);
    Plan plan = good_plan();
    item.spoil(plan);
    expect_complaints(plan, item.complaints);
  }
}

// head: root owns a; member: b owns c; a -> b -> c.
Plan two_nodes() {
  Plan plan;
  plan.actors = {{"root", "group", "", false, "head"},
                 {"a", "loader", "root", true, "head"},
                 {"b", "replica", "", true, "member.0"},
                 {"c", "reducer", "b", false, "member.0"}};
  plan.links = {link("a", "b"), link("b", "c")};
  return plan;
}

const std::vector<Case>& cases_of_nodes() {
  static const std::vector<Case> kCases = {
      {"nothing", [](Plan&) {}, {}},
      {"an owner elsewhere",
       [](Plan& p) { p.actors[3].node = std::string("head"); },
       {"actor 'c' on node 'head' is owned by 'b' on node 'member.0'"}},
      {"two roots of one node",
       [](Plan& p) { p.actors[2].node = p.actors[3].node = std::string("head"); },
       {"one actor of node 'head' may have no owner, but root, b have none"}},
      {"a node without root",
       [](Plan& p) { p.actors[1].node = std::string("member.1"); },
       {"actor 'a' on node 'member.1' is owned by 'root' on node 'head'",
        "every actor of node 'member.1' has an owner"}},
      {"an actor without node",
       [](Plan& p) {
         p.actors.push_back({"d", "x", "", false});
       },
       {"actor 'd' is on no node"}},
      {"one name on two nodes",
       [](Plan& p) {
         p.actors.push_back({"a", "x", "b", false, "member.0"});
       },
       {"two actors are named 'a'"}},
      {"a circle over two nodes",
       [](Plan& p) { p.links.push_back(link("c", "a")); },
       {"the actors a -> b -> c -> a wait for each other"}},
  };
  return kCases;
}

TEST(Plan, CheckLooksAtEveryNode) {
  for (const Case& item : cases_of_nodes()) {
    SCOPED_TRACE(item.what);
    Plan plan = two_nodes();
    item.spoil(plan);
    expect_complaints(plan, item.complaints);
  }
}

TEST(Plan, PrintsNodesWithTheirTreesAndMarksLinksThatCross) {
  EXPECT_EQ(print(two_nodes()),
            "actors, each below its owner:\n"
            "  node head\n"
            "    root (group)\n"
            "      a (loader, own thread)\n"
            "  node member.0\n"
            "    b (replica, own thread)\n"
            "      c (reducer)\n"
            "links:\n"
            "  a.b -> b.in  data, 8 messages, 67108864 bytes, member.0 <- head\n"
            "  b.c -> c.in  data, 8 messages, 67108864 bytes\n");
}

Plan meshed_plan() {
  Plan plan = good_plan();
  plan.meshes = {{{"a", "b", "c"}, "ring", Lane::kData, 8, 100, 1}};
  return plan;
}

TEST(Plan, AMeshIsALinkFromEachOfItsActorsToEachOther) {
  const Plan plan = meshed_plan();
  EXPECT_TRUE(check(plan).empty());
  EXPECT_EQ(count_links(plan), 8U);
  const std::vector<LinkPlan> links = links_of(plan);
  ASSERT_EQ(links.size(), 8U);
  EXPECT_EQ(links[0], plan.links[0]);
  const MeshPlan& mesh = plan.meshes[0];
  for (std::size_t from = 0; from < 3; ++from) {
    for (std::size_t to = 0; to < 3; ++to) {
      if (from == to) continue;
      EXPECT_EQ(links[2 + mesh.position(from, to)], mesh.link(from, to));
    }
  }
  EXPECT_EQ(links[2], (LinkPlan{"a", "ring.1", "b", "ring", Lane::kData, 8, 100, 1}));
  EXPECT_EQ(links[7], (LinkPlan{"c", "ring.1", "b", "ring", Lane::kData, 8, 100, 1}));
  EXPECT_THAT(print(plan), HasSubstr("\n  each of a, b, c to each other of them at ring  data, 8 "
                                     "messages, 100 bytes, 1 tokens\n"));
}

TEST(Plan, RefusesMeshesThatCannotRun) {
  struct Case {
    std::function<void(Plan&)> change;
    std::string complaint;
  };
  const std::vector<Case> cases = {
      {[](Plan& p) { p.meshes[0].actors = {"a"}; }, "mesh 'ring' joins fewer than two actors"},
      {[](Plan& p) { p.meshes[0].actors[1] = "a"; }, "mesh 'ring' names 'a' twice"},
      {[](Plan& p) { p.meshes[0].actors[1] = "x"; }, "mesh 'ring' names 'x', which does not exist"},
      {[](Plan& p) { p.meshes[0].port = ""; }, "a mesh lacks a port name"},
      {[](Plan& p) { p.meshes[0].message_credits = 0; }, "mesh 'ring' has 0 message credits"},
      {[](Plan& p) { p.meshes[0].byte_credits = 0; }, "mesh 'ring' has 0 byte credits"},
      {[](Plan& p) { p.meshes[0].tokens = -1; }, "mesh 'ring' has -1 tokens"},
      {[](Plan& p) { p.meshes[0].tokens = 0; }, "wait for each other from the start"},
      {[](Plan& p) { p.meshes.push_back(p.meshes[0]); }, "leaves ports of 'a' that other links"},
      {[](Plan& p) { p.links[0].from_port = "ring.1"; }, "leaves ports of 'a' that other links"}};
  for (const Case& example : cases) {
    Plan plan = meshed_plan();
    example.change(plan);
    const std::vector<Error> errors = check(plan);
    ASSERT_FALSE(errors.empty()) << example.complaint;
    EXPECT_THAT(errors.front().message, HasSubstr(example.complaint));
  }
}

TEST(Plan, NodesComeInTheOrderOfTheActors) {
  EXPECT_EQ(nodes_of(two_nodes()), (std::vector<std::string>{"head", "member.0"}));
  EXPECT_EQ(nodes_of(good_plan()), std::vector<std::string>{""});
  EXPECT_TRUE(nodes_of(Plan{}).empty());
}

TEST(Plan, PrintsTheTreeAndTheLinks) {
  Plan plan = good_plan();
  plan.links[1].tokens = 2;
  EXPECT_EQ(print(plan),
            "actors, each below its owner:\n"
            "  root (group)\n"
            "    a (loader, own thread)\n"
            "    b (replica, own thread)\n"
            "      c (reducer)\n"
            "links:\n"
            "  a.b -> b.in  data, 8 messages, 67108864 bytes\n"
            "  b.c -> c.in  data, 8 messages, 67108864 bytes, 2 tokens\n");
}

TEST(Plan, EqualPlansCompareEqual) {
  EXPECT_EQ(good_plan(), good_plan());
  Plan other = good_plan();
  other.links[0].byte_credits += 1;
  EXPECT_NE(good_plan(), other);
}

TEST(Plan, PrintOfACheckedOutPlanEnds) {
  Plan plan = good_plan();
  plan.actors.push_back({"", "x", "", false});
  plan.actors[2].owner = std::string("c");
  EXPECT_THAT(print(plan), HasSubstr("root (group)"));
}

}  // namespace
}  // namespace troupe::runtime
