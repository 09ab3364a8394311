// Launchers with tools that stand in for the real ones: what they are called with, how their
// answers are read, and what is made of failures.

#include "launch/pools/launchers.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "tests/launch/made_tools.h"

namespace troupe::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Launchers : public MadeTools {
 protected:
  using Kind = config::LauncherKind;
  static config::PoolSection pool_of(const std::string& name, Kind kind) {
    config::PoolSection pool;
    pool.name = name;
    pool.launcher = kind;
    return pool;
  }
};

TEST_F(Launchers, MarkNamesTheRunAndTheNode) {
  EXPECT_EQ(launch_mark(plan_, "hpc.3"), "hpc.3@1a2b3c4d");
  EXPECT_EQ(launched_node("1a2b3c4d", "hpc.3@1a2b3c4d"), "hpc.3");
  EXPECT_EQ(launched_node("00000000", "hpc.3@1a2b3c4d"), "");
  EXPECT_EQ(launched_node("1a2b3c4d", ""), "");
}

TEST_F(Launchers, SlurmGetsAJobWhoseTokenNobodyElseReads) {
  config::PoolSection pool = pool_of("hpc", Kind::kSlurm);
  pool.options = {"--partition=gpu", "--time=01:00:00"};
  pool.workers = 2;
  const auto launcher = *make_launcher(pool, plan_);
  tool("sbatch", "echo 17");
  const auto id = launcher->start({"hpc.0", 2, "SECRET"});
  ASSERT_TRUE(id.ok()) << id.error().message;
  EXPECT_EQ(*id, "17");
  EXPECT_THAT(calls(), HasSubstr("[--job-name=troupe-1a2b3c4d-hpc.0]"));
  EXPECT_THAT(calls(), HasSubstr("[--no-requeue][--signal=B:TERM@60][--partition=gpu]"));
  EXPECT_THAT(calls() + input(), Not(HasSubstr("SECRET")));
  EXPECT_THAT(input(), HasSubstr("exec /opt/troupe join 'tcp://10.0.0.5:8500#KEY' --launched "
                                 "hpc.0@1a2b3c4d --workers 2 --token-file " +
                                 (folder_ / "pools/hpc.0.token")));
  const std::string token = (folder_ / "pools/hpc.0.token");
  EXPECT_EQ(read_text(token), "SECRET\n");
  EXPECT_EQ(std::filesystem::status(token).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(Launchers, SlurmsJobsAreReadAndThoseOfOthersAreNot) {
  const auto launcher = *make_launcher(pool_of("hpc", Kind::kSlurm), plan_);
  tool("squeue",
       "echo '17|RUNNING|node3|troupe-1a2b3c4d-hpc.0'; "
       "echo '18|PENDING|(Priority)|troupe-1a2b3c4d-hpc.1'; "
       "echo '19|RUNNING|node4|troupe-ffffffff-hpc.2'; echo '20|RUNNING|n|sleep'; "
       "echo '21|COMPLETING|node5|troupe-1a2b3c4d-hpc.3'; "
       "echo '22|RUNNING|node6|troupe-1a2b3c4d-hpc2.0'; "
       "echo '23|CONFIGURING|node7|troupe-1a2b3c4d-hpc.4'; "
       "echo '24|SPECIAL_EXIT|(held)|troupe-1a2b3c4d-hpc.5'");
  const auto nodes = launcher->list();
  ASSERT_TRUE(nodes.ok()) << nodes.error().message;
  std::vector<std::string> words;
  for (const auto& node : *nodes) {
    words.push_back(node.name + " " + node.id + (node.queued ? " queued " : " ") + node.where +
                    (node.boots ? " boots" : ""));
  }
  EXPECT_THAT(words, ElementsAre("hpc.0 17 node3", "hpc.1 18 queued (Priority)", "hpc.3 21 node5",
                                 "hpc.4 23 node7 boots", "hpc.5 24 queued (held)"));
  tool("scancel", "");
  EXPECT_TRUE(launcher->stop("hpc.0", "17").ok());
  EXPECT_TRUE(launcher->stop("hpc.1", "").ok());
  EXPECT_THAT(calls(), HasSubstr("[17]"));
  EXPECT_THAT(calls(), HasSubstr("[--name=troupe-1a2b3c4d-hpc.1]"));
}

TEST_F(Launchers, SlurmsOtherClustersAreAskedForTheirJobs) {
  config::PoolSection pool = pool_of("hpc", Kind::kSlurm);
  tool("sbatch", "echo '17;west'");
  tool("squeue",
       "echo 'CLUSTER: east'; echo '17|RUNNING|node3|troupe-1a2b3c4d-hpc.1'; echo; "
       "echo 'CLUSTER: west'; echo '17|RUNNING|node3|troupe-1a2b3c4d-hpc.0'");
  tool("scancel", "");
  using Words = std::vector<std::string>;
  for (const Words& options :
       {Words{"--clusters=east,west"}, Words{"--clusters", "east,west"}, Words{"-M", "east,west"},
        Words{"-Meast,west"}, Words{"--time=1", "--clusters=south", "-Meast,west"}}) {
    pool.options = options;
    const auto launcher = *make_launcher(pool, plan_);
    std::filesystem::remove(calls_);
    EXPECT_EQ(*launcher->start({"hpc.0", 1, ""}), "17;west");
    const auto nodes = launcher->list();
    ASSERT_TRUE(nodes.ok()) << nodes.error().message;
    ASSERT_EQ(nodes->size(), 2U);
    EXPECT_EQ(nodes->front().name + " " + nodes->front().id, "hpc.1 17;east");
    EXPECT_EQ(nodes->back().name + " " + nodes->back().id, "hpc.0 17;west");
    EXPECT_THAT(calls(), HasSubstr("%j][--clusters=east,west]"));
    EXPECT_TRUE(launcher->stop("hpc.0", "17;west").ok());
    EXPECT_THAT(calls(), HasSubstr("[17][--clusters=west]"));
    EXPECT_TRUE(launcher->stop("hpc.2", "").ok());
    EXPECT_THAT(calls(), HasSubstr("[--name=troupe-1a2b3c4d-hpc.2][--clusters=east]"));
    EXPECT_THAT(calls(), HasSubstr("[--name=troupe-1a2b3c4d-hpc.2][--clusters=west]"));
  }
  pool.options.clear();
  std::filesystem::remove(calls_);
  EXPECT_TRUE((*make_launcher(pool, plan_))->list().ok());
  EXPECT_THAT(calls(), Not(HasSubstr("--clusters")));
  ::setenv("SBATCH_CLUSTERS", "north", 1);
  EXPECT_TRUE((*make_launcher(pool, plan_))->list().ok());
  ::unsetenv("SBATCH_CLUSTERS");
  EXPECT_THAT(calls(), HasSubstr("[--clusters=north]"));
}

TEST_F(Launchers, LastWordsOfASlurmJobAreTheEndOfItsLog) {
  const auto launcher = *make_launcher(pool_of("hpc", Kind::kSlurm), plan_);
  EXPECT_EQ(launcher->last_words("hpc.0"), "");
  std::filesystem::create_directories(plan_.folder);
  std::ofstream(plan_.folder + "/hpc.0.log") << "first\n/bin/sh: no\tprogram\n \n";
  EXPECT_EQ(launcher->last_words("hpc.0"),
            plan_.folder + "/hpc.0.log ends with: /bin/sh: no program");
  std::ofstream(plan_.folder + "/hpc.1.log") << std::string(5000, 'x') << "\nlast";
  EXPECT_THAT(launcher->last_words("hpc.1"), testing::EndsWith("ends with: last"));
  std::ofstream(plan_.folder + "/hpc.2.log") << std::string(5000, 'x');
  EXPECT_LT(launcher->last_words("hpc.2").size(), 300 + plan_.folder.size() + 40);
}

TEST_F(Launchers, SlurmEndsManyJobsWithOneCall) {
  const auto launcher = *make_launcher(pool_of("hpc", Kind::kSlurm), plan_);
  const std::vector<actors::ListedNode> nodes{{"hpc.0", "17"}, {"hpc.1", ""}, {"hpc.2", "19"}};
  tool("scancel", "");
  for (const auto& stopped : launcher->stop_all(nodes)) EXPECT_TRUE(stopped.ok());
  EXPECT_EQ(calls(),
            "[--quiet][--full][17][19]\n[--quiet][--full][--name=troupe-1a2b3c4d-hpc.1]\n");
  tool("scancel", "for job; do [ $job != 19 ] || exit 1; done");
  const auto stopped = launcher->stop_all(nodes);
  EXPECT_FALSE(stopped[0].ok());
  EXPECT_TRUE(stopped[1].ok());
  EXPECT_FALSE(stopped[2].ok());
}

// Each command waits for the others.
TEST_F(Launchers, CommandsThatStopNodesRunAtOnce) {
  config::PoolSection pool = pool_of("own", Kind::kCommand);
  pool.start = "cloud up";
  pool.stop = "cloud {id}";
  tool("cloud", "[ $1 != bad ] || exit 3; touch " + (folder_ / "here-") + "$1; while [ $(ls " +
                    (folder_ / "here-") + "* | wc -l) -lt 3 ]; do sleep 0.02; done");
  const auto stopped =
      (*make_launcher(pool, plan_))
          ->stop_all({{"own.0", "a"}, {"own.1", "b"}, {"own.2", "bad"}, {"own.3", "c"}});
  ASSERT_EQ(stopped.size(), 4U);
  EXPECT_TRUE(stopped[0].ok() && stopped[1].ok() && stopped[3].ok());
  EXPECT_THAT(stopped[2].error().message, HasSubstr("exit code 3"));
}

TEST_F(Launchers, FailuresSayWhatTheToolSaid) {
  const auto launcher = *make_launcher(pool_of("hpc", Kind::kSlurm), plan_);
  tool("sbatch", "echo 'sbatch: error: invalid partition specified: gpu' >&2; exit 1");
  EXPECT_THAT(launcher->start({"hpc.0", 1, ""}).error().message,
              HasSubstr("ended with exit code 1: sbatch: error: invalid partition"));
  tool("sbatch", "echo 'a strange answer'");
  EXPECT_THAT(launcher->start({"hpc.0", 1, ""}).error().message, HasSubstr("no job's number"));
  tool("squeue", "kill -9 $$");
  EXPECT_THAT(launcher->list().error().message, HasSubstr("was killed by signal 9"));
  ::setenv("PATH", (folder_ / "empty").c_str(), 1);
  EXPECT_THAT(launcher->list().error().message, HasSubstr("no program 'squeue' in PATH"));
}

TEST_F(Launchers, CommandsAreSplitAsAShellDoesAndReadByNone) {
  config::PoolSection pool = pool_of("own", Kind::kCommand);
  pool.start = "cloud up {name} --run '{join}' \"$HOME `date`\" a\\ b";
  pool.stop = "cloud down {id}";
  pool.list = "cloud ls";
  const auto launcher = *make_launcher(pool, plan_);
  tool("cloud", "echo vm-1 and more");
  const auto id = launcher->start({"own.0", 1, "SECRET"});
  ASSERT_TRUE(id.ok()) << id.error().message;
  EXPECT_EQ(*id, "vm-1");
  EXPECT_EQ(calls(),
            "[up][troupe-1a2b3c4d-own.0][--run][/opt/troupe join 'tcp://10.0.0.5:8500#KEY' "
            "--launched own.0@1a2b3c4d --workers 1 --token-file -][$HOME `date`][a b]\n");
  EXPECT_EQ(input(), "SECRET\n");
  EXPECT_TRUE(launcher->stop("own.0", "vm-1").ok());
  EXPECT_THAT(calls(), HasSubstr("[down][vm-1]"));
  tool("cloud",
       "echo 'troupe-1a2b3c4d-own.0 vm-1 running'; echo 'other x'; "
       "echo 'troupe-1a2b3c4d-own.1 vm-2 queued'");
  const auto nodes = launcher->list();
  ASSERT_TRUE(nodes.ok());
  ASSERT_EQ(nodes->size(), 2U);
  EXPECT_EQ((*nodes)[0].name, "own.0");
  EXPECT_TRUE((*nodes)[1].queued);
  pool.start = "cloud 'up";
  EXPECT_THAT(make_launcher(pool, plan_).error().message, HasSubstr("a quote of `cloud 'up`"));
}

// A command that has run may have made its node first.
TEST_F(Launchers, CommandThatFailsMayHaveStartedItsNode) {
  config::PoolSection pool = pool_of("own", Kind::kCommand);
  pool.start = "cloud up";
  pool.stop = "cloud down";
  const auto launcher = *make_launcher(pool, plan_);
  tool("cloud", "echo vm-1; echo 'timed out' >&2; exit 1");
  const auto failed = launcher->start({"own.0", 1, ""});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind, runtime::ErrorKind::kLostPeers);
  EXPECT_THAT(failed.error().message, HasSubstr("exit code 1: timed out"));
  EXPECT_EQ(launcher->id_for("own.0"), "vm-1");
  EXPECT_EQ(launcher->id_for("own.1"), "");
  std::filesystem::remove(folder_ / "bin/cloud");
  EXPECT_EQ(launcher->start({"own.1", 1, ""}).error().kind, runtime::ErrorKind::kUsage)
      << "nothing has run";
}

TEST_F(Launchers, IdsThatCannotBeKeptAreErrors) {
  config::PoolSection pool = pool_of("own", Kind::kCommand);
  pool.start = pool.stop = pool.list = "cloud";
  const auto launcher = *make_launcher(pool, plan_);
  const std::string fits(256, 'x');
  for (const auto& [id, is_good] :
       {std::pair(fits, true), {fits + "x", false}, {"a\\033[2J", false}, {"\\377", false}}) {
    tool("cloud", "printf '" + id + " more\n'");
    const auto started = launcher->start({"own.0", 1, ""});
    EXPECT_EQ(started.ok(), is_good) << id;
    if (!started.ok()) {
      EXPECT_EQ(started.error().kind, runtime::ErrorKind::kLostPeers);
      EXPECT_LT(started.error().message.size(), 200U);
    }
    tool("cloud", "printf 'troupe-1a2b3c4d-own.0 " + id + "\n'");
    EXPECT_EQ(launcher->list().ok(), is_good) << id;
  }
  tool("cloud", "head -c 2000000 /dev/zero | tr '\\0' x");
  EXPECT_LT(launcher->start({"own.0", 1, ""}).error().message.size(), 200U);
}

TEST_F(Launchers, ListThatLacksItsEndIsAnError) {
  config::PoolSection pool = pool_of("own", Kind::kCommand);
  pool.start = pool.stop = pool.list = "cloud";
  tool("cloud", "yes 'troupe-1a2b3c4d-own.0 vm' | head -c 1100000");
  EXPECT_THAT((*make_launcher(pool, plan_))->list().error().message,
              HasSubstr("cloud prints more than 1024 KiB"));
  tool("squeue", "yes '1|RUNNING|n|troupe-1a2b3c4d-hpc.0' | head -c 1100000");
  EXPECT_THAT((*make_launcher(pool_of("hpc", Kind::kSlurm), plan_))->list().error().message,
              HasSubstr("squeue prints more than 1024 KiB"));
}

TEST_F(Launchers, RowsThatNameNoNodeAreLeftOut) {
  config::PoolSection pool = pool_of("own", Kind::kCommand);
  pool.start = pool.stop = pool.list = "cloud";
  tool("cloud",
       "for name in own.1x own. own.12345678901 owner.1 own.7; do echo troupe-1a2b3c4d-$name a; "
       "done");
  const auto nodes = (*make_launcher(pool, plan_))->list();
  ASSERT_TRUE(nodes.ok());
  ASSERT_EQ(nodes->size(), 1U);
  EXPECT_EQ(nodes->front().name, "own.7");
}

TEST_F(Launchers, PriceIsTheFirstWordOfACommand) {
  config::PoolSection pool = pool_of("spot", Kind::kCommand);
  EXPECT_EQ(*make_price(pool), nullptr) << "it does not change";
  pool.price = "price 'large node'";
  tool("price", "echo 0.25 EUR");
  const auto price = make_price(pool);
  ASSERT_TRUE(price.ok());
  EXPECT_EQ(*(*price)(), 0.25);
  EXPECT_EQ(calls(), "[large node]\n");
  for (const char* answer : {"none", "-1", "nan", "0,45", "1.200,50", ""}) {
    tool("price", fmt::format("echo {}", answer));
    const auto wrong = (*price)();
    ASSERT_FALSE(wrong.ok()) << answer;
    EXPECT_EQ(wrong.error().message,
              "pool spot: `price 'large node'` prints no price, such as 0.45");
  }
  tool("price", "echo no market >&2; exit 1");
  EXPECT_THAT((*price)().error().message, HasSubstr("no market"));
  pool.price = "price 'large";
  EXPECT_THAT(make_price(pool).error().message,
              HasSubstr("pool spot: a quote of `price 'large` does not end"));
}

}  // namespace
}  // namespace troupe::launch
