#include "runtime/base/log.h"
#include "tests/support/fails_with.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace troupe::runtime {
namespace {

class LogFile : public ::testing::Test {
 protected:
  std::string content() const { return troupe::read_text(path_); }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "log.txt";
};

TEST_F(LogFile, HoldsLinesOfItsLevelAndAboveWithTheirNames) {
  LogOptions options;
  options.to_stderr = false;
  options.file = path_;
  const Log log = Log::open(options).value();
  log.debug("unseen");
  log.info("seen");
  log.named("loader").warning("slow {disk}");
  const std::string text = content();
  EXPECT_EQ(text.find("unseen"), std::string::npos);
  EXPECT_THAT(text, testing::HasSubstr("info seen\n"));
  EXPECT_THAT(text, testing::HasSubstr("warning loader: slow {disk}\n"));
}

TEST_F(LogFile, ThatCannotBeOpenedIsAnErrorNamingIt) {
  LogOptions options;
  options.to_stderr = false;
  options.file = path_ + "/is/no/folder";
  std::ofstream(path_) << "a file where a folder would be";
  const Result<Log> log = Log::open(options);
  ASSERT_THAT(log, FailsWith(ErrorKind::kData, options.file));
}

// A text may hold names that others chose.
TEST_F(LogFile, CannotBeForgedNorCommandTheTerminal) {
  LogOptions options;
  options.to_stderr = false;
  options.file = path_;
  const Log log = Log::open(options).value();
  log.info("reading bad\x1b[2J\r\n2026-01-01 00:00:00.000 error the disk is full");
  EXPECT_THAT(content(), testing::HasSubstr("info reading bad\\x1b[2J\\r\n  2026-01-01"));
  EXPECT_EQ(content().find('\x1b'), std::string::npos);
}

TEST_F(LogFile, ThatWasRemovedIsPutBackWithItsLines) {
  LogOptions options;
  options.to_stderr = false;
  options.file = path_;
  const Log log = Log::open(options).value();
  log.info("before");
  std::filesystem::remove(path_);
  ASSERT_TRUE(log.named("a").put_back().ok());
  log.info("after");
  EXPECT_THAT(content(), testing::HasSubstr("before\n"));
  EXPECT_THAT(content(), testing::HasSubstr("after\n"));
  EXPECT_TRUE(log.put_back().ok()) << "it is there";
  std::filesystem::remove(path_);
  std::ofstream(path_) << "another's";
  EXPECT_FALSE(log.put_back().ok());
}

TEST(Log, TellsItsListenerToo) {
  std::vector<std::string> lines;
  LogOptions options;
  options.to_stderr = false;
  options.level = LogLevel::kWarning;
  options.also = [&](LogLevel, std::string_view line) { lines.emplace_back(line); };
  const Log log = Log::open(options).value();
  log.info("no");
  log.named("a").error("yes");
  EXPECT_EQ(lines, std::vector<std::string>{"a: yes"});
}

TEST(Log, SilentLogTakesEverything) {
  const Log log = Log::silent();
  log.error("nobody hears");
}

}  // namespace
}  // namespace troupe::runtime
