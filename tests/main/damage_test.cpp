// Checkpoints that are damaged or cannot be written, and runs that diverge.

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "pipeline/checkpoint/checkpoint.h"
#include "pipeline/checkpoint/checkpoint_seal.h"
#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Damage : public ToyRun {
 protected:
  void flip_byte(const std::string& file, std::size_t at) {
    std::string bytes = read_text(file);
    bytes.at(at) ^= 0x10;
    write_text(file, bytes);
  }
  // Writes the file again, whole, as a troupe of that format version would have.
  void reseal(const std::string& file, std::uint32_t version, const std::string& bytes) {
    runtime::Buffer buffer = runtime::Buffer::allocate(bytes.size());
    std::memcpy(buffer.mutable_data(), bytes.data(), bytes.size());
    pipeline::seal_checkpoint(version, buffer);
    write_text(file, {reinterpret_cast<const char*>(buffer.data()), buffer.size()});
  }
  // The run goes on from the checkpoint before its newest, says so, and comes to the hash.
  void expect_falls_back(const std::string& hash) {
    const std::string older = checkpoint("a", 1), said = checkpoint("a", 0);
    const ProcessEnd end = call({"run", "--resume", path("a"), "--json"});
    ASSERT_EQ(end.exit_code, 0) << end.err;
    EXPECT_THAT(end.err, HasSubstr(said));
    EXPECT_THAT(end.err, HasSubstr("resuming from " + older));
    EXPECT_THAT(read_text(path("a/log.txt")), HasSubstr("resuming from " + older));
    EXPECT_EQ(last_line(end)["state_hash"].text(), hash);
  }
};

TEST_F(Damage, FlippedByteInTheNewestCheckpointFallsBackToTheOneBefore) {
  const std::string hash = hash_of("a");
  const std::string newest = checkpoint("a", 0);
  for (const std::size_t from_end : {1, 300}) {
    flip_byte(newest, std::filesystem::file_size(newest) - from_end);
    expect_refused(call({"inspect", newest}), 4, {newest, "damaged"});
    expect_falls_back(hash);
  }
}

TEST_F(Damage, AllCheckpointsDamagedIsRefusedNamingEach) {
  run("a");
  const std::string metrics = read_text(path("a/metrics.jsonl"));
  std::vector<std::string> files;
  for (const std::string& name : checkpoints("a")) files.push_back(path("a/checkpoints/" + name));
  for (const std::string& file : files) flip_byte(file, 700);
  files.push_back("holds no checkpoint to resume from");
  expect_refused(call({"run", "--resume", path("a")}), 4, files);
  EXPECT_EQ(read_text(path("a/metrics.jsonl")), metrics);
}

TEST_F(Damage, NewerVersionIsRefusedByItsNumber) {
  const std::string hash = hash_of("a");
  const std::string newest = checkpoint("a", 0);
  const std::uint32_t version = pipeline::kCheckpointVersion + 16;
  reseal(newest, version, read_text(newest));
  expect_refused(call({"inspect", newest}), 4,
                 {newest, fmt::format("written in format version {}", version), "newer troupe"});
  expect_falls_back(hash);
}

// Whole by its seal, but not what it says it is: only a defect writes such a file.
TEST_F(Damage, HashThatIsNotTheContentsIsPrintedBesideTheRealOneAndRefused) {
  const std::string hash = hash_of("a");
  const std::string newest = checkpoint("a", 0);
  std::string other = hash;
  other[0] = other[0] == '0' ? '1' : '0';
  std::string bytes = read_text(newest);
  const std::size_t at = bytes.find(hash);
  ASSERT_NE(at, std::string::npos);
  reseal(newest, pipeline::kCheckpointVersion, bytes.replace(at, hash.size(), other));

  const ProcessEnd inspected = call({"inspect", newest, "--json"});
  EXPECT_EQ(inspected.exit_code, 4);
  EXPECT_THAT(inspected.err, AllOf(HasSubstr(hash), HasSubstr(other)));
  EXPECT_EQ(last_line(inspected)["state_hash"].text(), other);
  EXPECT_EQ(last_line(inspected)["recomputed_hash"].text(), hash);
  const ProcessEnd for_people = call({"inspect", newest});
  EXPECT_EQ(for_people.exit_code, 4);
  EXPECT_THAT(for_people.out, AllOf(HasSubstr(hash), HasSubstr(other)));
}

// It may be anybody's file.
TEST_F(Damage, TextsOfACheckpointDoNotCommandTheTerminal) {
  run("a");
  const std::string newest = checkpoint("a", 0);
  const std::string numerics =
      last_line(call({"inspect", newest, "--json"}))["numerics_class"].text();
  std::string bytes = read_text(newest);
  const std::size_t at = bytes.find(numerics);
  ASSERT_NE(at, std::string::npos);
  reseal(newest, pipeline::kCheckpointVersion, bytes.replace(at, 4, "\n\x1b[3"));
  const std::string said = call({"inspect", newest}).out;
  EXPECT_THAT(said, HasSubstr("numerics class: \\n\\x1b[3" + numerics.substr(4)));
  EXPECT_EQ(said.find('\x1b'), std::string::npos);
}

// As on a disk that is full from now on: what is there stays whole, and the run says what failed.
TEST_F(Damage, FullDiskLeavesTheOlderCheckpointsAsTheyAre) {
  for (const char* workers : {"0", "2"}) {
    std::filesystem::remove_all(path("a"));
    run("a");
    const std::string newest = checkpoint("a", 0);
    const std::string before = read_text(newest);
    const ProcessEnd end =
        call({"run", "--resume", path("a"), "--set", "train.epochs=3", "--workers", workers},
             {.largest_file_bytes = 16384});
    EXPECT_EQ(end.signal, 0);
    EXPECT_EQ(end.exit_code, 4) << end.err;
    EXPECT_THAT(end.err, HasSubstr("cannot write " + path("a/")));
    EXPECT_THAT(end.err, HasSubstr("File too large"));
    EXPECT_EQ(read_text(newest), before);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path("a"))) {
      EXPECT_NE(entry.path().extension(), ".part");
    }
    EXPECT_EQ(resumed("a", {"--set", "train.epochs=3"})["state_hash"].text(),
              hash_of("whole", {"--set", "train.epochs=3"}));
    std::filesystem::remove_all(path("whole"));
  }
}

// The last state fits neither the run's folder, nor one beside it, nor one of temporary files.
TEST_F(Damage, StateThatCanBeSavedNowhereLeavesNoFolderBehind) {
  std::filesystem::create_directory(path("temporary"));
  ::setenv("TMPDIR", path("temporary").c_str(), 1);
  for (const char* workers : {"0", "2"}) {
    std::filesystem::remove_all(path("a"));
    const ProcessEnd end = run("a",
                               {"--set", "actors.checkpointer.every=none", "--set",
                                "train.iterations=4", "--workers", workers},
                               {.folder = folder_.path(), .largest_file_bytes = 16384});
    EXPECT_EQ(end.exit_code, 4) << end.err;
    EXPECT_THAT(end.err, HasSubstr("the state after 16 steps was not saved"));
    EXPECT_FALSE(std::filesystem::exists(path("runs")));
    EXPECT_TRUE(std::filesystem::is_empty(path("temporary")));
  }
  ::unsetenv("TMPDIR");
}

TEST_F(Damage, NanLossNamesStepMicroBatchAndTensor) {
  const ProcessEnd end = run("a", {"--set", "train.learning_rate={g: 1e30, d: 1e30}", "--json"});
  EXPECT_EQ(end.exit_code, 6) << end.err;
  EXPECT_THAT(end.err, testing::ContainsRegex("step [0-9]+ \\(iteration [0-9]+, slot [0-9]+\\): "
                                              "discriminator/[a-z0-9_/]+ of micro-batch [0-9]+ "
                                              "is NaN or infinite"));
  const JsonValue summary = last_line(end);
  EXPECT_THAT(summary["error"].text(), HasSubstr("NaN"));
  EXPECT_THAT(end.err, HasSubstr("start again with a lower learning rate or another seed"));
  EXPECT_THAT(read_text(path("a/log.txt")), HasSubstr("NaN"));
  const ProcessEnd left = call({"inspect", checkpoint("a", 0), "--json"});
  EXPECT_EQ(last_line(left)["state_hash"].text(), summary["state_hash"].text());
}

TEST_F(Damage, EmptyImagesEndTheRunWithACheckpointLeft) {
  const ProcessEnd end =
      run("a", {"--set", "model.generator.layers.6={activation: relu}", "--set",
                "train.learning_rate.g=1", "--set", "train.empty_iterations_limit=2", "--json"});
  EXPECT_EQ(end.exit_code, 6) << end.err;
  EXPECT_THAT(end.err, HasSubstr("every fake of the last 2 iterations has zero energy"));
  const ProcessEnd left = call({"inspect", checkpoint("a", 0), "--json"});
  EXPECT_EQ(last_line(left)["state_hash"].text(), last_line(end)["state_hash"].text());
  EXPECT_EQ(last_line(left)["slot"].integer(), 0);
}

}  // namespace
}  // namespace troupe
