// Members that have no data: the head sends them what they compute with, and nobody can tell.

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"
#include "tests/main/ledger_check.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

class ClusterRemote : public ClusterRun {
 protected:
  ClusterRemote() { std::filesystem::create_directory(path("bare")); }

  // The run begins with one member that has data; others may join it.
  Words endless() const {
    Words words = run_words("a", kEndlessRun);
    words.insert(words.end(), {"--workers", "1", "--set", "cluster.listen=" + address_});
    return command(words);
  }
  // In a folder of its own, with nothing in it.
  std::unique_ptr<Process> join(const Words& more = {"--data", "remote"}) const {
    Words words{"join", address_};
    words.insert(words.end(), more.begin(), more.end());
    ProcessOptions options;
    options.folder = path("bare");
    return std::make_unique<Process>(command(words), options);
  }
  // Waits until the one member that joins is there.
  void wait_until_joined(Process& process) const {
    ASSERT_TRUE(wait_until_told(process, "a", R"("joined":["member.)"))
        << read_text(path("a/log.txt"));
  }
  // In this moment nobody else can open it: the head has it in memory.
  void hide_data() const { std::filesystem::rename(path("toy.h5"), path("hidden.h5")); }
  void show_data() const { std::filesystem::rename(path("hidden.h5"), path("toy.h5")); }
  // The member ended well, has said what it does without, and has left nothing behind.
  void expect_bare(Process& member) const {
    const ProcessEnd end = member.wait();
    EXPECT_EQ(end.exit_code, 0) << end.err << read_text(path("a/log.txt"));
    EXPECT_THAT(end.err, HasSubstr("without data of its own: the head sends the micro-batches"));
    EXPECT_THAT(end.err, Not(HasSubstr("training data:")));
    EXPECT_TRUE(std::filesystem::is_empty(path("bare")));
  }

  const std::string address_ = fmt::format("127.0.0.1:{}", free_port());
};

TEST_F(ClusterRemote, NewcomerWithoutDataJoinsAndCostsNoBit) {
  Process head(command(head_words("a", address_, 1, kEndlessRun)));
  Process first(command({"join", address_}));
  wait_until_training(head, "a");
  hide_data();
  expect_refused(join({})->wait(), 4, {"toy.h5"});
  const auto member = join();
  wait_until_joined(head);
  const std::size_t before = steps("a");
  wait_until_training(head, "a", before + 80);
  show_data();
  stop_and_expect_whole(head);
  EXPECT_EQ(first.wait().exit_code, 0);
  expect_bare(*member);
}

// Also those that the run begins with, all of them.
TEST_F(ClusterRemote, RunWhoseMembersHaveNoDataAtAllEndsInTheSameState) {
  const Words iterations = until_iteration(60);
  const std::string whole = hash_of("whole", iterations);
  Words words = head_words("a", address_, 2, iterations);
  words.push_back("--json");
  Process head(command(words));
  const auto one = join(), other = join();
  const ProcessEnd end = head.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(last_line(end)["state_hash"].text(), whole);
  expect_clean_ledger(path("a"), 240);
  expect_bare(*one);
  expect_bare(*other);
}

// It waits for the next one, which feeds it anew.
TEST_F(ClusterRemote, HeadThatIsLostIsReplacedAndFeedsThemAnew) {
  constexpr const char* kView = R"({"kind":"view")";
  Process process(endless());
  wait_until_training(process, "a");
  const auto member = join();
  wait_until_joined(process);
  for (int i = 0; i < 2; ++i) {
    wait_until_training(process, "a", steps("a") + 80);
    const pid_t before = head();
    const std::size_t views = count("a", kView);
    ASSERT_GT(before, 0);
    ::kill(before, SIGKILL);
    ASSERT_TRUE(wait_until(process, [&] { return head() != before && count("a", kView) > views; }))
        << process.wait().err;
  }
  stop(process);
  EXPECT_EQ(count("a", R"("causes":["the head was lost)"), 2U) << "nobody else was";
  expect_bare(*member);
  expect_goes_on({"--workers", "0"});
}

TEST_F(ClusterRemote, OneThatIsKilledCostsWhatAnyOtherCosts) {
  Process process(endless());
  wait_until_training(process, "a");
  const auto member = join();
  wait_until_joined(process);
  wait_until_training(process, "a", steps("a") + 40);
  member->send(SIGKILL);
  EXPECT_EQ(member->wait().signal, SIGKILL);
  ASSERT_TRUE(wait_until_told(process, "a", R"("members":["member.0"])"));
  stop(process);
  EXPECT_EQ(parse_json(read_text(path("a/summary.json")))["failures_survived"].integer(), 1U)
      << read_text(path("a/log.txt"));
  expect_goes_on({"--workers", "0"});
}

// A folder may have any name.
TEST_F(ClusterRemote, FolderOfThatNameIsMeantByItsPath) {
  Process head(command(head_words("a", address_, 1, kEndlessRun)));
  const auto member = join({"--data", "./remote"});
  wait_until_training(head, "a");
  stop(head);
  const ProcessEnd end = member->wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("training data:"));
  EXPECT_TRUE(std::filesystem::exists(path("bare/remote/index")));
}

}  // namespace
}  // namespace troupe
