#include "runtime/transport/keys.h"
#include "runtime/base/disk.h"
#include "runtime/base/utc_time.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace troupe::runtime {
namespace {

using testing::HasSubstr;

class Keys : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  std::string file(const std::string& name, const std::string& text) const {
    write_text(path(name), text);
    ::chmod(path(name).c_str(), 0600);
    return path(name);
  }

  const TemporaryFolder folder_;
  const KeyPair keys_ = *make_keys();
};

TEST_F(Keys, AreDifferentEachTime) {
  EXPECT_TRUE(is_key(keys_.public_key));
  EXPECT_TRUE(is_key(keys_.secret_key));
  EXPECT_NE(keys_.public_key, make_keys()->public_key);
}

TEST_F(Keys, WhatIsWrittenIsReadAgain) {
  ASSERT_TRUE(write_public_key(path("a.public"), keys_).ok());
  ASSERT_TRUE(write_secret_key(path("a.secret"), keys_).ok());
  EXPECT_THAT(*read_file(path("a.public"), 1000), HasSubstr("\npublic " + keys_.public_key + "\n"));
  const auto read = read_secret_key(path("a.secret"));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->public_key, keys_.public_key);
  EXPECT_EQ(read->secret_key, keys_.secret_key);
}

TEST_F(Keys, TheSecretIsItsOwnersAlone) {
  ASSERT_TRUE(write_secret_key(path("a.secret"), keys_).ok());
  struct stat facts {};
  ASSERT_EQ(::stat(path("a.secret").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  ::chmod(path("a.secret").c_str(), 0640);
  const auto read = read_secret_key(path("a.secret"));
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("chmod 600"));
}

TEST_F(Keys, AreNeverOverwritten) {
  ASSERT_TRUE(write_secret_key(path("a.secret"), keys_).ok());
  const auto again = write_secret_key(path("a.secret"), *make_keys());
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(read_secret_key(path("a.secret"))->secret_key, keys_.secret_key);
}

TEST_F(Keys, DamagedFilesAreNamedWithTheirLine) {
  const auto secret_error = [&](const std::string& text) {
    const auto read = read_secret_key(file("bad", text));
    return read.ok() ? "" : read.error().message;
  };
  EXPECT_THAT(secret_error("# x\nnonsense\n"), HasSubstr("bad:2: expected 'public KEY'"));
  EXPECT_THAT(secret_error("public short\n"), HasSubstr("bad:1: that is not a key"));
  const std::string line = "public " + keys_.public_key + "\n";
  EXPECT_THAT(secret_error(line + line), HasSubstr("bad:2: a second public key"));
  EXPECT_THAT(secret_error(line), HasSubstr("holds no secret key"));
  EXPECT_THAT(secret_error(""), HasSubstr("holds no public key"));
  EXPECT_THAT(secret_error(line + "secret " + make_keys()->secret_key),
              HasSubstr("does not belong"));
  EXPECT_EQ(secret_error(line + "secret " + keys_.secret_key), "");
  EXPECT_THAT(read_secret_key(path("none")).error().message, HasSubstr("No such file"));
  EXPECT_THAT(read_secret_key(folder_.path()).error().message, HasSubstr("is not a regular file"));
}

TEST_F(Keys, AnAllowListHasAKeyAndANamePerLine) {
  const std::string other = make_keys()->public_key;
  const auto list = read_allow_list(
      file("list", "# who may\n\n" + keys_.public_key + "  node a\r\n" + other + "\n"));
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ((*list)[0].key, keys_.public_key);
  EXPECT_EQ((*list)[0].name, "node a");
  EXPECT_EQ((*list)[1].key, other);
}

TEST_F(Keys, AnAllowListWithMistakesIsRefusedByLine) {
  const std::string line = keys_.public_key + " a\n";
  EXPECT_THAT(read_allow_list(file("list", line + "what\n")).error().message,
              HasSubstr("list:2: 'what' is not a key"));
  EXPECT_THAT(read_allow_list(file("list", line + line)).error().message,
              HasSubstr("list:2: this key stands in the list already"));
}

TEST_F(Keys, AnAllowListMaySayUntilWhen) {
  const auto allowed = read_allow_list(
      file("list", fmt::format("{} a b until 2026-01-31T12:00:00Z\n{} until 1970-01-01T00:00:01Z\n",
                               keys_.public_key, make_keys()->public_key)));
  ASSERT_TRUE(allowed.ok()) << allowed.error().message;
  EXPECT_EQ(allowed->at(0).name, "a b");
  ASSERT_TRUE(allowed->at(0).until);
  EXPECT_EQ(utc_text(*allowed->at(0).until), "2026-01-31T12:00:00Z");
  EXPECT_EQ(allowed->at(1).name, "");
  EXPECT_EQ(allowed->at(1).until, std::chrono::sys_seconds(std::chrono::seconds(1)));
}

TEST_F(Keys, AMomentThatIsNoneIsRefusedByLine) {
  for (const char* moment :
       {"tomorrow", "2026-01-31", "2026-01-31T12:00:00.500Z", "2026-01-31T12:00:00Z or so", "",
        "\t", "2026-01-31T12:00:00Z until 2027-01-31T12:00:00Z", "until"}) {
    const auto read = read_allow_list(
        file("list", fmt::format("# a comment\n{} a until {}\n", keys_.public_key, moment)));
    ASSERT_FALSE(read.ok()) << moment;
    EXPECT_THAT(read.error().message, HasSubstr("list:2: 'until' is followed by"));
  }
}

// A key that seems to expire, and does not, would admit whoever finds it for ever.
TEST_F(Keys, AMomentCountsWhateverStandsBetweenTheWords) {
  for (const char* rest : {"bob until\t1970-01-01T00:00:01Z", "bob\tuntil 1970-01-01T00:00:01Z",
                           "\tbob \t until \t1970-01-01T00:00:01Z \t\r"}) {
    const auto allowed =
        read_allow_list(file("list", fmt::format("{} {}\n", keys_.public_key, rest)));
    ASSERT_TRUE(allowed.ok()) << allowed.error().message;
    EXPECT_EQ(allowed->at(0).name, "bob") << rest;
    EXPECT_EQ(allowed->at(0).until, std::chrono::sys_seconds(std::chrono::seconds(1))) << rest;
  }
  for (const char* rest : {"bob until", "until", "bob\tuntil\r"}) {
    const auto read = read_allow_list(file("list", fmt::format("{} {}\n", keys_.public_key, rest)));
    ASSERT_FALSE(read.ok()) << rest;
    EXPECT_THAT(read.error().message, HasSubstr("list:1: 'until' is followed by")) << rest;
  }
  const auto named = read_allow_list(file("list", keys_.public_key + " until_later untilled\n"));
  ASSERT_TRUE(named.ok()) << named.error().message;
  EXPECT_EQ(named->at(0).name, "until_later untilled");
  EXPECT_FALSE(named->at(0).until);
}

TEST_F(Keys, ASecretKeyHasItsPublicOneInIt) {
  const auto derived = keys_of_secret(keys_.secret_key);
  ASSERT_TRUE(derived.ok());
  EXPECT_EQ(derived->public_key, keys_.public_key);
  EXPECT_FALSE(keys_of_secret("").ok());
  EXPECT_FALSE(keys_of_secret(std::string(40, '"')).ok());
}

// Section "Test Case 1" of ZeroMQ's RFC 32 encodes the first eight of these bytes as "HelloWorld".
const std::string kZ85 = "HelloWorldHelloWorldHelloWorldHelloWorld";
const std::string kDigits = "864fd26fb559f75b864fd26fb559f75b864fd26fb559f75b864fd26fb559f75b";

TEST(KeyForm, KeyOfEarlierReleasesIsTheSameKeyInDigits) {
  EXPECT_EQ(key_of_text(kZ85), kDigits);
  EXPECT_EQ(key_of_text(kDigits), kDigits);
  EXPECT_EQ(key_of_text("864FD" + kDigits.substr(5)), kDigits);
  EXPECT_EQ(key_of_bytes(bytes_of_key(kDigits)), kDigits);
}

TEST(KeyForm, TextThatStandsForNoKeyIsNone) {
  for (const std::string& text :
       {std::string(), std::string(39, '0'), std::string(41, '0'), std::string(63, '0'),
        std::string(65, '0'), std::string(64, 'G'), std::string(40, ' '), std::string(40, '\xff'),
        std::string(40, '#')}) {
    EXPECT_EQ(key_of_text(text), "") << text;
  }
  EXPECT_NE(key_of_text(std::string(40, '0')), "");
}

TEST_F(Keys, FilesOfEarlierReleasesAreRead) {
  const auto list = read_allow_list(file("list", kZ85 + " old\n" + keys_.public_key + " new\n"));
  ASSERT_TRUE(list.ok()) << list.error().message;
  EXPECT_EQ(list->at(0).key, kDigits);
  const auto twice = read_allow_list(file("twice", kZ85 + " old\n" + kDigits + " new\n"));
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(twice.error().message, HasSubstr("twice:2: this key stands in the list already"));
}

}  // namespace
}  // namespace troupe::runtime
