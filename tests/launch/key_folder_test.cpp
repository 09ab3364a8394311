#include "launch/meeting/key_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "runtime/base/utc_time.h"
#include "runtime/transport/zmq_admission.h"
#include "tests/launch/launch_support.h"
#include "tests/support/fails_with.h"

namespace troupe::launch {
namespace {

using testing::HasSubstr;

int mode_of(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? static_cast<int>(facts.st_mode & 0777) : -1;
}

class KeyFolderTest : public testing::Test {
 protected:
  TemporaryFolder temporary_;
  std::string folder_ = temporary_ / "keys";
  runtime::FileDisk disk_;
};

TEST_F(KeyFolderTest, WhatIsMadeIsReadAgainAndAdmitsItself) {
  const auto made = make_key_folder(folder_, "box", disk_);
  ASSERT_TRUE(made.ok()) << made.error().message;
  const auto read = read_key_folder(folder_);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->own.public_key, made->own.public_key);
  EXPECT_EQ(read->own.secret_key, made->own.secret_key);
  ASSERT_EQ(read->allowed.size(), 1u);
  EXPECT_EQ(read->allowed[0].key, made->own.public_key);
  EXPECT_EQ(read->allowed[0].name, "box");
  EXPECT_EQ(mode_of(folder_), 0700);
  EXPECT_EQ(mode_of(secret_key_file(folder_)), 0600);
}

TEST_F(KeyFolderTest, NothingIsOverwritten) {
  ASSERT_TRUE(make_key_folder(folder_, "box", disk_).ok());
  for (const auto& file : {secret_key_file, public_key_file, allowed_keys_file}) {
    const std::string kept = file(folder_);
    const std::string content = read_text(kept);
    ASSERT_THAT(make_key_folder(folder_, "box", disk_),
                FailsWith(runtime::ErrorKind::kUsage, " exists; keys are never overwritten"));
    EXPECT_EQ(read_text(kept), content);
    std::filesystem::remove(kept);
  }
  EXPECT_TRUE(make_key_folder(folder_, "box", disk_).ok());
}

TEST_F(KeyFolderTest, NoneIsLeftOfWhatCouldNotBeWritten) {
  class FullDisk : public runtime::FileDisk {
   public:
    runtime::Result<void> replace(const std::string& path, std::span<const std::byte>) override {
      return runtime::Error{runtime::ErrorKind::kData, path + ": disk full"};
    }
  } full;
  ASSERT_THAT(make_key_folder(folder_, "box", full),
              FailsWith(runtime::ErrorKind::kUsage, "allowed.keys: disk full"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(KeyFolderTest, OfThoseThatMakeOneAtOnceOneDoesAndKeepsItsKeys) {
  constexpr int kThreads = 4, kRounds = 50;
  for (int round = 0; round < kRounds; ++round) {
    const std::string folder = temporary_ / std::to_string(round);
    std::atomic<int> ready = 0;
    std::vector<std::string> made(kThreads);
    std::vector<std::thread> threads;
    for (std::string& public_key : made) {
      threads.emplace_back([&] {
        runtime::FileDisk disk;
        for (++ready; ready < kThreads;) std::this_thread::yield();
        const auto keys = make_key_folder(folder, "box", disk);
        if (keys.ok()) public_key = keys->own.public_key;
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::erase(made, "");
    ASSERT_EQ(made.size(), 1u);
    const auto read = read_key_folder(folder);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->own.public_key, made.front());
  }
}

TEST_F(KeyFolderTest, WhatIsWrongWithAFolderIsNamed) {
  const auto message = [&] {
    const auto read = read_key_folder(folder_);
    EXPECT_TRUE(read.ok() || read.error().kind == runtime::ErrorKind::kUsage);
    return read.ok() ? std::string() : read.error().message;
  };
  EXPECT_THAT(message(), HasSubstr("secret.key is missing; 'troupe keygen " + folder_ + "'"));
  ASSERT_TRUE(make_key_folder(folder_, "box", disk_).ok());
  ASSERT_EQ(::chmod(secret_key_file(folder_).c_str(), 0644), 0);
  EXPECT_THAT(message(), HasSubstr("chmod 600"));
  ASSERT_EQ(::chmod(secret_key_file(folder_).c_str(), 0600), 0);
  std::ofstream(allowed_keys_file(folder_)) << "# nobody\n";
  EXPECT_THAT(message(), HasSubstr("allowed.keys admits nobody"));
  std::filesystem::remove(allowed_keys_file(folder_));
  EXPECT_THAT(message(), HasSubstr("allowed.keys"));
}

TEST_F(KeyFolderTest, ATokenAdmitsUntilItsMomentAndIsThenTakenOffTheList) {
  using std::chrono::seconds;
  ASSERT_TRUE(make_key_folder(folder_, "a", disk_).ok());
  const std::chrono::sys_seconds now{seconds(1000)};
  const auto token = make_join_token(folder_, now, now + seconds(60), disk_);
  ASSERT_TRUE(token.ok()) << token.error().message;
  const auto keys = runtime::keys_of_secret(*token);
  ASSERT_TRUE(keys.ok());
  const auto admits = [&](std::chrono::sys_seconds when) {
    const auto allowed = runtime::read_allow_list(allowed_keys_file(folder_));
    return allowed.ok() && runtime::AllowState().admits(keys->public_key, *allowed, when) ==
                               runtime::Admission::kAdmitted;
  };
  EXPECT_TRUE(admits(now));
  EXPECT_TRUE(admits(now + seconds(59)));
  EXPECT_FALSE(admits(now + seconds(60)));
  ASSERT_TRUE(make_join_token(folder_, now + seconds(60), now + seconds(90), disk_).ok());
  EXPECT_FALSE(admits(now));  // the line is gone
  EXPECT_EQ(runtime::read_allow_list(allowed_keys_file(folder_))->size(), 2u);
}

TEST_F(KeyFolderTest, ATokenLeavesAllElseOfTheListAsItIs) {
  using std::chrono::seconds;
  const auto own = make_key_folder(folder_, "a", disk_);
  const auto friends = make_key_folder(temporary_ / "friend", "b", disk_);
  const auto gone = make_key_folder(temporary_ / "gone", "c", disk_);
  ASSERT_TRUE(own.ok() && friends.ok() && gone.ok());
  const std::chrono::sys_seconds now{seconds(1000)};
  const std::string before = "# of the lab, by phone\n\n  " + friends->own.public_key +
                             "   b  \n# mine\n" + own->own.public_key + " a\n";
  // The last line has no end.
  std::ofstream(allowed_keys_file(folder_))
      << before << gone->own.public_key << " c until " << runtime::utc_text(now) << "\n#"
      << gone->own.public_key << " was c";
  const auto token = make_join_token(folder_, now, now + seconds(60), disk_);
  ASSERT_TRUE(token.ok()) << token.error().message;
  EXPECT_EQ(read_text(allowed_keys_file(folder_)),
            before + "#" + gone->own.public_key + " was c\n" +
                runtime::keys_of_secret(*token)->public_key + " token until " +
                runtime::utc_text(now + seconds(60)) + "\n");
}

TEST_F(KeyFolderTest, TokensMadeAtOnceAreAllAdmitted) {
  using std::chrono::seconds;
  constexpr int kThreads = 8, kTokens = 10;
  ASSERT_TRUE(make_key_folder(folder_, "a", disk_).ok());
  const std::chrono::sys_seconds now{seconds(1000)};
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < kTokens; ++k) {
        made += make_join_token(folder_, now, now + seconds(60), disk_).ok() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, kThreads * kTokens);
  const auto allowed = runtime::read_allow_list(allowed_keys_file(folder_));
  ASSERT_TRUE(allowed.ok()) << allowed.error().message;
  EXPECT_EQ(allowed->size(), 1u + kThreads * kTokens);
}

TEST_F(KeyFolderTest, AFolderThatCannotBeLockedIsNamed) {
  const std::chrono::sys_seconds now{};
  ASSERT_THAT(make_join_token(folder_, now, now, disk_),
              FailsWith(runtime::ErrorKind::kUsage, folder_ + "/.lock cannot be locked"));
}

}  // namespace
}  // namespace troupe::launch
