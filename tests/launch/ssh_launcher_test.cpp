// Hosts of ssh that are folders of this machine: a made ssh runs the script in the folder of its
// host, or does what a file there says.

#include <gmock/gmock.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "launch/pools/pool_journal.h"
#include "tests/launch/made_tools.h"

namespace troupe::launch {
namespace {

using runtime::ErrorKind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class SshLauncher : public MadeTools {
 protected:
  void SetUp() override {
    tool("ssh",
         "for word; do host=$script script=$word; done; cd " + folder_.path() +
             "/$host || exit 255; "
             "[ ! -e refuses ] || { echo 'Permission denied (publickey)' >&2; exit 255; }; "
             "[ ! -e forced ] || exec echo hello; "
             "[ ! -e blind ] || script=$(printf %s \"$script\" | sed s/boot_id/no_id/); "
             "[ ! -e swallows ] || { setsid -w sh -c \"$script\" >late 2>&1; exit 255; }; "
             "setsid -w sh -c \"$script\"; code=$?; [ ! -e breaks ] || exit 255; exit $code");
    const std::string program = folder_ / "bin/member";
    std::ofstream(program) << "#!/bin/sh\nread token\nwhile :; do sleep 0.1; done\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    pool_.name = "campus";
    pool_.launcher = config::LauncherKind::kSsh;
    pool_.program = program;
    plan_.run = fmt::format("{:08x}", static_cast<unsigned>(::getpid()));
  }
  void TearDown() override {
    const auto left = launcher_->list();
    ASSERT_TRUE(left.ok());
    for (const auto& node : *left) EXPECT_TRUE(launcher_->stop(node.name, node.id).ok());
    EXPECT_THAT(nodes(), IsEmpty());
    MadeTools::TearDown();
  }
  void host(const std::string& name) {
    std::filesystem::create_directories(folder_ / name);
    pool_.hosts.push_back(name);
  }
  // The same folder by another name.
  void alias(const std::string& name, const std::string& of) {
    std::filesystem::create_symlink(of, folder_ / name);
    pool_.hosts.push_back(name);
  }
  void mark(const std::string& file) const { std::ofstream(folder_ / file) << ""; }
  void make() { launcher_ = *make_launcher(pool_, plan_); }
  std::vector<std::string> nodes() {
    std::vector<std::string> words;
    const auto listed = launcher_->list();
    EXPECT_TRUE(listed.ok());
    for (const auto& node : *listed) words.push_back(node.name + " " + node.where);
    return words;
  }

  config::PoolSection pool_;
  std::shared_ptr<actors::Launcher> launcher_;
};

TEST_F(SshLauncher, StartsWhatGoesOnAloneFindsItAndEndsIt) {
  host("node-a");
  make();
  EXPECT_EQ(launcher_->id_for("campus.0"), "node-a") << "known before it is asked for";
  const auto first = launcher_->start({"campus.0", 1, "SECRET"});
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(*first, "node-a");
  EXPECT_THAT(calls(), Not(HasSubstr("SECRET")));
  EXPECT_THAT(calls(), HasSubstr("[BatchMode=yes]"));
  EXPECT_THAT(nodes(), ElementsAre("campus.0 node-a"));
  EXPECT_THAT(launcher_->start({"campus.1", 1, ""}).error().message,
              HasSubstr("each of the 1 hosts of pool campus has a node"));
  ASSERT_TRUE(launcher_->stop("campus.0", "node-a").ok());
  EXPECT_THAT(nodes(), IsEmpty());
}

TEST_F(SshLauncher, HostThatRefusesHasNoNodeAndIsFree) {
  host("node-a");
  make();
  mark("node-a/refuses");
  const auto refused = launcher_->start({"campus.1", 1, ""});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(refused.error().message, HasSubstr("Permission denied (publickey)"));
  EXPECT_EQ(launcher_->id_for("campus.2"), "node-a");
  std::filesystem::remove(folder_ / "node-a/refuses");
  mark("node-a/forced");
  EXPECT_THAT(launcher_->start({"campus.2", 1, ""}).error().message,
              HasSubstr("does something else than ssh tells it"));
  std::filesystem::remove(folder_ / "node-a/forced");
}

TEST_F(SshLauncher, ConnectionThatBreaksBehindTheStartLeavesANodeThatKeepsItsHost) {
  host("node-a");
  host("node-b");
  make();
  mark("node-a/breaks");
  const auto broken = launcher_->start({"campus.0", 1, ""});
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().kind, ErrorKind::kLostPeers) << "it may be there";
  EXPECT_EQ(launcher_->id_for("campus.0"), "node-a");
  EXPECT_EQ(launcher_->id_for("campus.1"), "node-b") << "the other one is taken";
  // It does not answer, and may have it.
  mark("node-a/refuses");
  mark("node-b/refuses");
  EXPECT_THAT(nodes(), ElementsAre("campus.0 node-a (does not answer)"));
  EXPECT_FALSE(launcher_->stop("campus.0", "node-a").ok());
  // Both are this machine.
  std::filesystem::remove(folder_ / "node-b/refuses");
  EXPECT_THAT(nodes(), ElementsAre("campus.0 node-b"));
  EXPECT_EQ(launcher_->list()->front().id, "node-a") << "it is no second one";
  std::filesystem::remove(folder_ / "node-a/refuses");
  std::filesystem::remove(folder_ / "node-a/breaks");
  EXPECT_THAT(nodes(), ElementsAre("campus.0 node-a"));
}

// Nobody hears that it has begun, so that it is no node of its pool until it is found.
TEST_F(SshLauncher, NodeWhoseStartSaidNothingIsFoundWhenItsHostAnswers) {
  host("node-a");
  make();
  mark("node-a/swallows");
  const auto broken = launcher_->start({"campus.0", 1, ""});
  ASSERT_FALSE(broken.ok());
  std::filesystem::remove(folder_ / "node-a/swallows");
  EXPECT_THAT(nodes(), ElementsAre("campus.0 node-a"));
  EXPECT_TRUE(launcher_->id_for("campus.1").empty()) << "its host is taken";
}

// It is asked once behind a start that failed, and again behind the next one.
TEST_F(SshLauncher, HostThatDoesNotAnswerIsNotWaitedForUntilTheNextStartThere) {
  host("node-a");
  make();
  mark("node-a/refuses");
  const auto asked = [&] {
    const std::string before = calls();
    EXPECT_THAT(nodes(), IsEmpty());
    return calls() != before;
  };
  EXPECT_FALSE(launcher_->start({"campus.0", 1, ""}).ok());
  EXPECT_TRUE(asked());
  EXPECT_FALSE(asked());
  EXPECT_FALSE(launcher_->start({"campus.1", 1, ""}).ok());
  std::filesystem::remove(folder_ / "node-a/refuses");
  EXPECT_TRUE(asked());
  EXPECT_TRUE(asked()) << "it has answered, although a start there has failed";
}

TEST_F(SshLauncher, NodeIsStoppedByTheNameThatAnswers) {
  host("node-a");
  alias("node-b", "node-a");
  make();
  ASSERT_TRUE(launcher_->start({"campus.0", 1, ""}).ok());
  tool("ssh",
       "for word; do host=$script script=$word; done; [ $host != node-a ] || exit 255; "
       "cd " +
           folder_.path() + "/$host && exec sh -c \"$script\"");
  EXPECT_THAT(nodes(), ElementsAre("campus.0 node-b"));
  EXPECT_TRUE(launcher_->stop("campus.0", "node-a").ok());
  EXPECT_THAT(nodes(), ElementsAre("campus.0 node-a (does not answer)")) << "gone from the other";
  launcher_ = *make_launcher(pool_, plan_);
}

// The same node of two such hosts is two nodes: their machines look alike.
TEST_F(SshLauncher, HostsThatDoNotTellTheirBootsAreToldByTheirNames) {
  host("node-a");
  host("node-b");
  make();
  mark("node-a/blind");
  mark("node-b/blind");
  ASSERT_TRUE(launcher_->start({"campus.0", 1, ""}).ok());
  EXPECT_THAT(nodes(), ElementsAre("campus.0 node-a", "campus.0 node-b"));
}

// The next head looks where the one before it has looked.
TEST_F(SshLauncher, NodeThatIsAdoptedIsLookedForWhereItsHostRefuses) {
  host("node-a");
  make();
  launcher_->adopt("campus.7", "node-a");
  mark("node-a/refuses");
  EXPECT_THAT(nodes(), ElementsAre("campus.7 node-a (does not answer)"));
  std::filesystem::remove(folder_ / "node-a/refuses");
}

TEST_F(SshLauncher, TwoNamesOfOneHostAreOneHost) {
  alias("node-b", "node-a");
  host("node-a");
  make();
  launcher_->adopt("campus.9", "node-b");  // so that the other name is taken first
  ASSERT_TRUE(launcher_->start({"campus.0", 1, ""}).ok());
  launcher_ = *make_launcher(pool_, plan_);
  launcher_->adopt("campus.0", "node-a");
  EXPECT_THAT(nodes(), ElementsAre("campus.0 node-a")) << "once, by the name of its start";
  const auto second = launcher_->start({"campus.1", 1, ""});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(second.error().message, HasSubstr("node-b: it has a node of this pool already"));
  EXPECT_THAT(nodes(), ElementsAre("campus.0 node-a"));
}

// Two runs of this machine, each with a launcher.
TEST_F(SshLauncher, RunsThatShareHostsHaveANodeOnAHostOneAtATime) {
  host("node-a");
  host("node-b");
  make();
  JoinPlan other = plan_;
  other.run = "0a0a0a0a";
  const auto alone = *make_launcher(pool_, other);
  EXPECT_EQ(launcher_->id_for("campus.0"), "node-a");
  EXPECT_EQ(alone->id_for("campus.0"), "node-a") << "they know nothing of each other";
  plan_.hosts = other.hosts = folder_.path();
  plan_.journal = folder_ / "one.jsonl";
  other.journal = folder_ / "other.jsonl";
  make();
  auto second = *make_launcher(pool_, other);
  const auto start = [](actors::Launcher& launcher) {
    const auto host = launcher.start({"campus.0", 1, ""});
    return host.ok() ? *host : host.error().message;
  };
  EXPECT_EQ(start(*launcher_), "node-a");
  EXPECT_EQ(start(*second), "node-b");
  EXPECT_THAT(second->start({"campus.1", 1, ""}).error().message,
              HasSubstr("has a node already: node-a has a node of another run"));
  // Its head is killed, and its journal says that the node is there.
  auto journal = PoolJournal::open(other.journal);
  ASSERT_TRUE(journal.ok()) << journal.error().message;
  actors::PoolNode left{.name = "campus.0", .pool = "campus", .id = "node-b"};
  ASSERT_TRUE(journal->add(left).ok());
  second.reset();
  EXPECT_EQ(launcher_->id_for("campus.1"), "");
  EXPECT_THAT(launcher_->start({"campus.1", 1, ""}).error().message,
              HasSubstr("node-b has a node that is left of " + other.journal));
  // The next head of that run has its host, and frees it when the node is gone.
  second = *make_launcher(pool_, other);
  second->adopt("campus.0", "node-b");
  EXPECT_THAT(launcher_->start({"campus.1", 1, ""}).error().message,
              HasSubstr("node-b has a node of another run"));
  EXPECT_THAT(*second->list(), testing::SizeIs(1));
  ASSERT_TRUE(second->stop("campus.0", "node-b").ok());
  EXPECT_THAT(*second->list(), IsEmpty());
  EXPECT_EQ(launcher_->id_for("campus.1"), "") << "its journal does not say so yet";
  left.state = actors::PoolNodeState::kGone;
  ASSERT_TRUE(journal->add(left).ok());
  EXPECT_EQ(launcher_->id_for("campus.1"), "node-b");
  EXPECT_EQ(second->id_for("campus.1"), "");
}

TEST_F(SshLauncher, FolderOfSharedHostsThatIsNotThereIsTold) {
  host("node-a");
  plan_.hosts = folder_ / "nowhere";
  make();
  EXPECT_THAT(launcher_->start({"campus.0", 1, ""}).error().message,
              HasSubstr("nowhere/campus@node-a: No such file or directory"));
}

TEST_F(SshLauncher, ProgramThatCannotBeReadIsNotCopied) {
  host("node-a");
  pool_.program = "/nowhere/troupe";
  plan_.program = "/nowhere/either";
  make();
  const auto started = launcher_->start({"campus.0", 1, ""});
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message, HasSubstr("/nowhere/either cannot be read"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "node-a/.cache/troupe/troupe"));
}

}  // namespace
}  // namespace troupe::launch
