// Members that have no data: the head sends them what they compute with, and nobody can tell.

#include <gmock/gmock.h>

#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

class ClusterRemote : public ClusterRun {
 protected:
  ClusterRemote() { std::filesystem::create_directory(path("bare")); }

  // In a folder of its own, with nothing in it.
  std::unique_ptr<Process> join(const Words& more = {"--data", "remote"}) const {
    return ClusterRun::join(Words{address_} + more, {.folder = path("bare")});
  }
  // In this moment nobody else can open it: the head has it in memory.
  void hide_data() const { std::filesystem::rename(path("toy.h5"), path("hidden.h5")); }
  void show_data() const { std::filesystem::rename(path("hidden.h5"), path("toy.h5")); }
  // The member ended well, has said what it does without, and has left nothing behind.
  void expect_bare(Process& member) const {
    const ProcessEnd end = member.wait();
    EXPECT_EQ(end.exit_code, 0) << end.err << log();
    EXPECT_THAT(end.err, HasSubstr("without data of its own: the head sends the micro-batches"));
    EXPECT_THAT(end.err, Not(HasSubstr("training data:")));
    EXPECT_TRUE(std::filesystem::is_empty(path("bare")));
  }

  const std::string address_ = fmt::format("127.0.0.1:{}", free_port());
};

TEST_F(ClusterRemote, NewcomerWithoutDataJoinsAndCostsNoBit) {
  Process head(command(head_words("a", address_, 1, kEndlessRun)));
  Process first(command({"join", address_}));
  wait_until_training(head);
  hide_data();
  expect_refused(join({})->wait(), 4, {"toy.h5"});
  const auto member = join();
  ASSERT_TRUE(wait_until_told(head, R"("joined":["member.)")) << log();
  wait_until_training(head, steps() + 80);
  show_data();
  stop_and_expect_whole(head);
  EXPECT_EQ(first.wait().exit_code, 0);
  expect_bare(*member);
}

// A folder may have any name.
TEST_F(ClusterRemote, FolderOfThatNameIsMeantByItsPath) {
  Process head(command(head_words("a", address_, 1, kEndlessRun)));
  const auto member = join({"--data", "./remote"});
  wait_until_training(head);
  stop(head);
  const ProcessEnd end = member->wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("training data:"));
  EXPECT_TRUE(std::filesystem::exists(path("bare/remote/index")));
}

}  // namespace
}  // namespace troupe
