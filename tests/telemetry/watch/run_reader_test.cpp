#include "telemetry/watch/run_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <fmt/format.h>

#include "telemetry/history_news.h"
#include "telemetry/watch/file_tail.h"
#include "telemetry/watch/run_files.h"
#include "tests/support/temporary_folder.h"

namespace troupe::telemetry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A run's folder, written as a run writes it.
class RunFiles {
 public:
  std::string path() const { return folder_.path(); }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const {
    write_text(*this / name, text);
  }
  void append(const std::string& name, const std::string& text) const {
    std::ofstream(*this / name, std::ios::binary | std::ios::app) << text;
  }
  // Another file takes the name.
  void replace(const std::string& name, const std::string& text) const {
    write(name + ".part", text);
    std::filesystem::rename(*this / (name + ".part"), *this / name);
  }

 private:
  TemporaryFolder folder_;
};

std::string run_line_text(std::uint64_t step = 0) {
  return fmt::format(
      R"({{"kind":"run","time":100.0,"step":{},"name":"toy","model":"gan3d_12","schedule":["d_real","g"],)"
      R"("losses":[["generation",3.0]],"iterations":100,"iterations_per_epoch":10,"node":"local",)"
      R"("host":"a","role":"all","pid":7}})"
      "\n",
      step);
}

std::string step_lines(std::uint64_t from, std::uint64_t to) {
  std::string lines;
  for (std::uint64_t step = from; step < to; ++step) {
    lines +=
        fmt::format(R"({{"kind":"step","time":{},"step":{},"iteration":{},"slot":"{}","events":16,)"
                    R"("losses":{{"generation":{}}},"seconds":{{"compute":0.5}}}})"
                    "\n",
                    101 + step, step, step / 2, step % 2 == 0 ? "d_real" : "g", 0.5 * step);
  }
  return lines;
}

const char* const kSummary = R"({"state_hash":"ab","stopped":false,"error":null})";

// Waits, as long as it takes.
void until(const std::function<bool()>& holds) {
  while (!holds()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::unique_ptr<RunReader> open(const RunFiles& folder) {
  RunReaderOptions options;
  options.poll = std::chrono::milliseconds(2);
  auto reader = RunReader::open(folder.path(), options);
  CHECK(reader.ok(), reader.error().message);
  return std::move(*reader);
}

TEST(RunReader, FinishedRunIsReadWithItsEndNodesAndLog) {
  const RunFiles folder;
  folder.write("metrics.jsonl", run_line_text() + step_lines(0, 40));
  folder.write("summary.json", kSummary);
  folder.write("nodes.json",
               R"([{"name":"local","host":"here","pid":9,"role":"all","state":"ended",)"
               R"("since":"2025-01-31T12:34:56.789Z"}])");
  folder.write("log.txt", "2025-01-31 12:34:56.789 warning loader: slow\nand more of it\n");
  const auto reader = open(folder);
  const RunProgress progress = reader->history()->progress();
  EXPECT_EQ(progress.state, "ended");
  EXPECT_EQ(progress.steps, 40u);
  EXPECT_EQ(progress.iterations, 20u);
  EXPECT_FALSE(reader->live());
  ASSERT_EQ(reader->history()->nodes().size(), 1u);
  EXPECT_EQ(reader->history()->nodes()[0].host, "here");
  const auto log = reader->history()->news(0).log;
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[0].text, "loader: slow");
  EXPECT_EQ(log[1].level, "warning");
  EXPECT_EQ(log[1].time, log[0].time);
  EXPECT_EQ(reader->source().history->facts().name, "toy");
}

TEST(RunReader, FailureAndStopAreTold) {
  const RunFiles folder;
  folder.write("metrics.jsonl", run_line_text());
  folder.write("summary.json", R"({"state_hash":null,"error":"diverged"})");
  EXPECT_EQ(open(folder)->history()->progress().state, "failed");
  EXPECT_EQ(open(folder)->history()->progress().error, "diverged");
  folder.write("summary.json", R"({"state_hash":"a","stopped":true,"error":null})");
  EXPECT_EQ(open(folder)->history()->progress().state, "stopped");
}

TEST(RunReader, RunThatHasOnlyItsLockYetIsOneThatBegins) {
  const RunFiles folder;
  folder.write(".lock", "");
  const int lock = ::open((folder / ".lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
  const auto reader = open(folder);
  EXPECT_TRUE(reader->live());
  folder.write("metrics.jsonl", run_line_text() + step_lines(0, 4));
  until([&] { return reader->history()->progress().steps == 4; });
  ::close(lock);
}

TEST(RunReader, LinesThatAreAppendedAreFollowedToTheEnd) {
  const RunFiles folder;
  folder.write("metrics.jsonl", run_line_text());
  const auto reader = open(folder);
  EXPECT_TRUE(reader->live());
  const RunSource source = reader->source();
  EXPECT_TRUE(source.live());
  const std::string lines = step_lines(0, 10);
  for (std::size_t at = 0; at < lines.size(); at += 100) {
    folder.append("metrics.jsonl", lines.substr(at, 100));
  }
  until([&] { return reader->history()->progress().steps == 10; });
  EXPECT_EQ(reader->bad_lines(), 0u);
  folder.append("log.txt", "2025-01-31 12:34:56.789 info news\n");
  until([&] { return !reader->history()->news(0).log.empty(); });
  folder.write("summary.json", kSummary);
  until([&] { return !reader->live(); });
  EXPECT_FALSE(source.live());
  EXPECT_EQ(reader->history()->progress().state, "ended");
}

TEST(RunReader, RunThatIsResumedIsToldAnew) {
  const RunFiles folder;
  folder.write("metrics.jsonl", run_line_text() + step_lines(0, 40));
  folder.write("summary.json", kSummary);
  const auto reader = open(folder);
  const std::uint64_t version = reader->history()->version();
  std::filesystem::remove(folder / "summary.json");
  folder.replace("metrics.jsonl", run_line_text() + step_lines(0, 20));
  until([&] { return reader->history()->progress().steps == 20; });
  EXPECT_THAT(*reader->history()->since(version).json, HasSubstr("\"whole\":true"));
  EXPECT_TRUE(reader->live());
  EXPECT_EQ(reader->history()->progress().state, "training");
  folder.append("metrics.jsonl", run_line_text(20) + step_lines(20, 60));
  folder.write("summary.json", kSummary);
  until([&] { return reader->history()->progress().state == "ended"; });
  EXPECT_EQ(reader->history()->progress().steps, 60u);
}

TEST(RunReader, RunThatIsResumedIsStartingBeforeItTellsAnything) {
  const RunFiles folder;
  folder.write("metrics.jsonl", run_line_text() + step_lines(0, 40));
  folder.write("summary.json", R"({"state_hash":null,"error":"all is lost"})");
  const auto reader = open(folder);
  EXPECT_EQ(reader->history()->progress().state, "failed");
  std::filesystem::remove(folder / "summary.json");
  until([&] { return reader->live(); });
  until([&] { return reader->history()->progress().state == "starting"; });
  EXPECT_EQ(reader->history()->progress().error, "");
  EXPECT_EQ(reader->history()->progress().steps, 40u);
  folder.append("metrics.jsonl", run_line_text(40) + step_lines(40, 60));
  until([&] { return reader->history()->progress().state == "training"; });
}

TEST(RunReader, LinesThatAreNoneAreCountedAndTheOthersRead) {
  const RunFiles folder;
  std::string noise;
  for (int i = 0; i < 256; ++i) noise += static_cast<char>(i);
  folder.write("metrics.jsonl", run_line_text() + "{\"kind\":\n\n[]\nnull\n{}\n" + noise + "\n" +
                                    std::string(FileTail::kLongestLine + 10, '[') + "\n" +
                                    step_lines(0, 4) + "{\"kind\":\"st");
  folder.write("summary.json", "{");
  folder.write("nodes.json", "{\"name\":[]}");
  folder.write("log.txt", noise);
  const auto reader = open(folder);
  EXPECT_EQ(reader->history()->progress().steps, 4u);
  // Empty lines are none; of the noise, one ends amid it.
  EXPECT_EQ(reader->bad_lines(), 7u);
  folder.replace("metrics.jsonl", run_line_text() + step_lines(0, 8));
  until([&] { return reader->history()->progress().steps == 8u; });
  until([&] { return reader->bad_lines() == 0u; });
}

// For a run that fell silent long ago, and so has ended.
std::string reason_of(const RunFiles& folder) {
  folder.write("metrics.jsonl", run_line_text() + step_lines(0, 4));
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(folder / "metrics.jsonl", long_ago);
  const auto reader = open(folder);
  EXPECT_FALSE(reader->live());
  EXPECT_EQ(reader->history()->progress().state, "failed");
  return reader->history()->progress().error;
}

TEST(RunReader, RunThatEndedBeforeItBeganIsToBeStartedAgain) {
  const RunFiles folder;
  folder.write(".lock", "");
  const auto reader = open(folder);
  EXPECT_FALSE(reader->live());
  EXPECT_THAT(reader->history()->progress().error,
              HasSubstr("it had not begun to train, so start it again"));
}

TEST(RunReader, RunThatTellsNoEndHasEndedWhenItIsSilent) {
  const RunFiles folder;
  EXPECT_THAT(reason_of(folder), HasSubstr("its topology.yaml is missing: put it back"));
  folder.write("topology.yaml", "name: a\n");
  EXPECT_THAT(reason_of(folder), HasSubstr("--resume " + folder.path()));
  folder.write("summary.json", "garbage{");
  EXPECT_THAT(reason_of(folder), HasSubstr("summary.json is damaged"));
}

TEST(RunReader, RunWithoutASummaryEndsWithTheErrorItsLogEndsWith) {
  const RunFiles folder;
  folder.write("log.txt",
               "2025-01-31 12:34:56.789 info begun\n"
               "2025-01-31 12:34:57.789 error cannot go on:\n"
               "  a.h5 cannot be written: No space left\n");
  EXPECT_EQ(reason_of(folder),
            "it left no summary.json; the last its log says: cannot go on:\n"
            "  a.h5 cannot be written: No space left");
  folder.write("log.txt",
               "2025-01-31 12:34:56.789 error member.1 was lost\n"
               "2025-01-31 12:34:57.789 info 1 other goes on\n");
  EXPECT_THAT(reason_of(folder), HasSubstr("ended without a word"));
}

TEST(RunReader, FolderWithoutARunIsADataError) {
  const RunFiles folder;
  for (const std::string& path : {folder.path(), folder / "none"}) {
    const auto reader = RunReader::open(path);
    ASSERT_FALSE(reader.ok());
    EXPECT_EQ(reader.error().kind, runtime::ErrorKind::kData);
    EXPECT_THAT(reader.error().message, HasSubstr(path));
  }
}

TEST(RunReader, ReadingOfALargeRunCanBeStopped) {
  const RunFiles folder;
  folder.write("metrics.jsonl", run_line_text() + step_lines(0, 20'000));
  RunReaderOptions options;
  options.progress = [](std::uint64_t read, std::uint64_t bytes) {
    EXPECT_LT(read, bytes);
    return false;
  };
  EXPECT_FALSE(RunReader::open(folder.path(), options).ok());
}

TEST(RunReader, LockOfARunIsSeenAndNotTaken) {
  const RunFiles folder;
  folder.write("metrics.jsonl", run_line_text());
  folder.write(".lock", "");
  const int lock = ::open((folder / ".lock").c_str(), O_RDWR | O_CLOEXEC);
  const auto reader = open(folder);
  // A run that begins while its folder is watched gets its lock.
  EXPECT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
  EXPECT_TRUE(reader->live());
  ::close(lock);
}

TEST(FilesOfARun, LocksAreReadAsTheSystemTellsThem) {
  const std::string locks =
      "1: POSIX  ADVISORY  WRITE 11 08:01:500 0 EOF\n2: FLOCK  ADVISORY  WRITE 12 08:01:77 0 EOF\n"
      "2: -> FLOCK  ADVISORY  WRITE 13 08:01:78 0 EOF\n3: FLOCK  ADVISORY  READ 14 08:01:79 0 "
      "EOF\n";
  EXPECT_TRUE(is_locked(locks, 77));
  for (const std::uint64_t other : {500u, 7u, 78u, 79u, 1u}) EXPECT_FALSE(is_locked(locks, other));
  EXPECT_FALSE(is_locked("", 77));
}

TEST(FilesOfARun, LinesOfLogHaveTimeAndLevel) {
  const LogLine line = read_log_line("2025-01-31 12:34:56.789 error gate: lost");
  EXPECT_EQ(line.level, "error");
  EXPECT_EQ(line.text, "gate: lost");
  EXPECT_NEAR(line.time - 1738326896.789, 0.0, 86400.0);
  for (const char* other : {"", "text", "2025-01-31", "2025-01-31 12:34:56.789",
                            "2025-01-31 12:34:56.789 info", "9999999999-01-01 1:2:3.4 x y"}) {
    EXPECT_EQ(read_log_line(other).level, "") << other;
    EXPECT_EQ(read_log_line(other).text, other);
  }
}

struct Heard {
  FileTail::Reader reader{[this](std::string_view line) { lines.emplace_back(line); },
                          [this] { lines.emplace_back("ANEW"); }};
  std::vector<std::string> lines;
};

TEST(FileTail, WholeLinesComeOnceAndACutFileFromItsBeginning) {
  const RunFiles folder;
  FileTail tail(folder / "x");
  Heard heard;
  EXPECT_FALSE(tail.read_some(heard.reader));
  folder.write("x", "one\ntw");
  tail.read_some(heard.reader);
  folder.append("x", "o\n");
  tail.read_some(heard.reader);
  tail.read_some(heard.reader);
  EXPECT_THAT(heard.lines, ElementsAre("one", "two"));
  folder.replace("x", "one\ntwo\nthree\n");
  tail.read_some(heard.reader);
  EXPECT_THAT(heard.lines, ElementsAre("one", "two", "ANEW", "one", "two", "three"));
  folder.write("x", "1\n");
  tail.read_some(heard.reader);
  EXPECT_EQ(heard.lines.back(), "1");
}

TEST(FileTail, LinesThatAreTooLongAreCountedUntilAnotherFileComes) {
  const RunFiles folder;
  const std::string long_line(FileTail::kLongestLine + 1, 'x');
  folder.write("x", long_line + "\none\n" + long_line + "\ntwo\n");
  FileTail tail(folder / "x");
  Heard heard;
  while (tail.read_some(heard.reader)) {
  }
  EXPECT_THAT(heard.lines, ElementsAre("one", "two"));
  EXPECT_EQ(tail.left_out(), 2u);
  folder.replace("x", "three\n");
  tail.read_some(heard.reader);
  EXPECT_EQ(tail.left_out(), 0u);
}

TEST(FileTail, OfALongFileItsEndIsEnough) {
  const RunFiles folder;
  folder.write("x", "first line\nsecond line\nthird\n");
  FileTail tail(folder / "x", 10);
  Heard heard;
  tail.read_some(heard.reader);
  EXPECT_THAT(heard.lines, ElementsAre("third"));
}

}  // namespace
}  // namespace troupe::telemetry
