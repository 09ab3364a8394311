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

  // In a folder of its own, with nothing in it.
  std::unique_ptr<Process> join(const Words& more = {"--data", "remote"}) const {
    Words words{"join", address_};
    words.insert(words.end(), more.begin(), more.end());
    ProcessOptions options;
    options.folder = path("bare");
    return std::make_unique<Process>(command(words), options);
  }
  std::size_t count(const std::string& what) const {
    const std::string metrics = read_text(path("a/metrics.jsonl"));
    std::size_t found = 0;
    for (std::size_t at = metrics.find(what); at != std::string::npos;
         at = metrics.find(what, at + 1)) {
      ++found;
    }
    return found;
  }
  // In this moment nobody else can open it: the head has it in memory.
  void hide_data() const { std::filesystem::rename(path("toy.h5"), path("hidden.h5")); }
  void show_data() const { std::filesystem::rename(path("hidden.h5"), path("toy.h5")); }
  // The member ended well, has said what it does without, and has left nothing behind.
  void expect_bare(Process& member) const {
    const ProcessEnd end = member.wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
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
  ASSERT_TRUE(wait_until(head, [&] { return count(R"("joined":["member.)") == 1; }))
      << read_text(path("a/log.txt"));
  const std::size_t before = steps("a");
  wait_until_training(head, "a", before + 80);
  show_data();
  head.send(SIGTERM);
  EXPECT_EQ(head.wait().exit_code, 143);
  EXPECT_EQ(first.wait().exit_code, 0);
  expect_bare(*member);
  const std::uint64_t step = std::stoull(checkpoints("a").front().substr(5, 12));
  const Words iterations = until_iteration(step / 4 + 5);
  EXPECT_EQ(resumed("a", iterations)["state_hash"].text(), hash_of("whole", iterations));
  expect_clean_ledger(path("a"), 4 * (step / 4 + 5));
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
  const Words iterations = until_iteration(2000);
  const std::string whole = hash_of("whole", iterations);
  Words words = run_words("a", iterations);
  words.insert(words.end(), {"--workers", "1", "--json", "--set", "cluster.listen=" + address_});
  Process process(command(words));
  wait_until_training(process, "a");
  const auto member = join();
  ASSERT_TRUE(wait_until(process, [&] { return count(R"("joined":["member.)") == 1; }))
      << read_text(path("a/log.txt"));
  for (int i = 0; i < 2; ++i) {
    wait_until_training(process, "a", steps("a") + 80);
    const pid_t before = head();
    const std::size_t views = count(R"({"kind":"view")");
    ASSERT_GT(before, 0);
    ::kill(before, SIGKILL);
    ASSERT_TRUE(wait_until(process, [&] {
      return head() != before && count(R"({"kind":"view")") > views;
    })) << process.wait().err;
  }
  const ProcessEnd end = process.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(last_line(end)["state_hash"].text(), whole);
  EXPECT_EQ(steps("a"), 8000U);
  expect_clean_ledger(path("a"), 8000);
  EXPECT_EQ(count(R"("causes":["the head was lost)"), 2U) << "nobody else was";
  expect_bare(*member);
}

TEST_F(ClusterRemote, OneThatIsKilledCostsWhatAnyOtherCosts) {
  const Words iterations = until_iteration(1000);
  const std::string whole = hash_of("whole", iterations);
  Words words = run_words("a", iterations);
  words.insert(words.end(), {"--workers", "1", "--json", "--set", "cluster.listen=" + address_});
  Process process(command(words));
  wait_until_training(process, "a");
  const auto member = join();
  ASSERT_TRUE(wait_until(process, [&] { return count(R"("joined":["member.)") == 1; }))
      << read_text(path("a/log.txt"));
  wait_until_training(process, "a", steps("a") + 40);
  member->send(SIGKILL);
  EXPECT_EQ(member->wait().signal, SIGKILL);
  const ProcessEnd end = process.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(last_line(end)["state_hash"].text(), whole);
  EXPECT_EQ(last_line(end)["failures_survived"].integer(), 1U) << read_text(path("a/log.txt"));
  expect_clean_ledger(path("a"), 4000);
}

// A folder may have any name.
TEST_F(ClusterRemote, FolderOfThatNameIsMeantByItsPath) {
  Process head(command(head_words("a", address_, 1, kEndlessRun)));
  const auto member = join({"--data", "./remote"});
  wait_until_training(head, "a");
  head.send(SIGTERM);
  EXPECT_EQ(head.wait().exit_code, 143);
  const ProcessEnd end = member->wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("training data:"));
  EXPECT_TRUE(std::filesystem::exists(path("bare/remote/index")));
}

}  // namespace
}  // namespace troupe
