// Runs whose files are copied to a server while they train.

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

class ResultCopies : public ClusterRun {
 protected:
  ResultCopies() {
    std::filesystem::create_directory(path("served"));
    server_ = std::make_unique<Process>(
        Words{TROUPE_SOURCE_DIR "/tests/pipeline/file_server", path("served")});
    EXPECT_TRUE(server_->wait_until([&] { return server_->out().ends_with('\n'); }));
  }
  void TearDown() override {
    server_->send(SIGTERM);
    server_->wait();
    ClusterRun::TearDown();
  }
  // The way is one of the server's.
  Words copied_to(const std::string& way) const {
    const std::string port = server_->out().substr(0, server_->out().size() - 1);
    return {"--set",
            fmt::format("actors.checkpointer.copies=http://127.0.0.1:{}/{}/runs/a/", port, way)};
  }
  // A file of the run, as the server has it.
  std::string served(std::string name) const {
    for (char& letter : name) letter = letter == '/' ? '+' : letter;
    return read_text(path("served/runs+a+" + name));
  }

  std::unique_ptr<Process> server_;
};

TEST_F(ResultCopies, ServerHasTheFilesThatTheRunHasAloneAndWithWorkers) {
  const std::string usual = hash_of("usual");
  for (const char* const workers : {"0", "2"}) {
    const std::string name = fmt::format("a{}", workers);
    const ProcessEnd end = run(name, copied_to("plain") + Words{"--json", "--workers", workers});
    ASSERT_EQ(end.exit_code, 0) << end.err;
    EXPECT_EQ(last_line(end)["state_hash"].text(), usual);
    EXPECT_THAT(end.err, HasSubstr(" files of the run are copied to http://127.0.0.1"));
    for (const char* const file : {"topology.yaml", "summary.json", "metrics.jsonl"}) {
      EXPECT_EQ(served(file), read_text(path(name + "/" + file))) << file;
    }
    ASSERT_FALSE(checkpoints(name).empty());
    for (const std::string& file : checkpoints(name)) {
      EXPECT_EQ(served("checkpoints/" + file), read_text(path(name + "/checkpoints/" + file)));
    }
    std::filesystem::remove_all(path("served"));
    std::filesystem::create_directory(path("served"));
  }
}

// A run that was killed goes on from the topology and the checkpoints that the server has.
TEST_F(ResultCopies, KilledRunGoesOnFromWhatTheServerHas) {
  Process process(command(run_words("a", kEndlessRun + copied_to("plain"))));
  const auto served_checkpoints = [&] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path("served"))) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("runs+a+checkpoints+") && name.ends_with(".h5")) names.push_back(name);
    }
    return names;
  };
  ASSERT_TRUE(process.wait_until([&] {
    return std::filesystem::exists(path("served/runs+a+topology.yaml")) &&
           served_checkpoints().size() > 1;
  }));
  process.send(SIGKILL);
  process.wait();
  std::filesystem::create_directories(path("b/checkpoints"));
  std::filesystem::copy(path("served/runs+a+topology.yaml"), path("b/topology.yaml"));
  for (const std::string& name : served_checkpoints()) {
    const std::string own = name.substr(name.rfind('+') + 1);
    std::filesystem::copy(path("served/" + name), path("b/checkpoints/" + own));
  }
  const std::uint64_t iterations = newest_step("b") / 4 + 5;
  EXPECT_EQ(resumed("b", until_iteration(iterations))["state_hash"].text(),
            hash_of("whole", until_iteration(iterations)));
}

// Neither does one that cannot be reached.
TEST_F(ResultCopies, ServerThatRefusesEndsNoRunAndIsTold) {
  const ProcessEnd end = run("a", copied_to("nosuch") + Words{"--json"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(last_line(end)["state_hash"].text(), hash_of("usual"));
  EXPECT_THAT(end.err,
              HasSubstr("/runs/a/summary.json: there is no such place on the server (404); "
                        "the file stays here"));
  EXPECT_THAT(end.err, HasSubstr("are not copied to http://127.0.0.1"));
  EXPECT_THAT(end.err, Not(HasSubstr("are copied to")));
}

TEST_F(ResultCopies, PlaceWithASecretOrOfAnotherKindIsRefused) {
  const auto place = [&](const std::string& address) {
    return run("a", {"--set", "actors.checkpointer.copies='" + address + "'"});
  };
  expect_refused(place("http://name:secret@127.0.0.1/a"), 3, {"with a name or a password in it"});
  expect_refused(place("http://127.0.0.1/a#b"), 3, {"actors.checkpointer.copies"});
  expect_refused(place("/mnt/results"), 3, {"actors.checkpointer.copies", "s3://BUCKET/runs/a"});
}

}  // namespace
}  // namespace troupe
