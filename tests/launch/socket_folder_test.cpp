#include "launch/meeting/socket_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "tests/launch/launch_support.h"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

std::string place_of(const TemporaryFolder& folder) {
  return fs::path(folder / "any").parent_path().string();
}

// A folder for sockets that a process made which was killed then.
std::string left_by_killed(const std::string& parent) {
  int ends[2];
  CHECK(::pipe(ends) == 0, "no pipe");
  const pid_t process = ::fork();
  CHECK(process >= 0, "no process");
  if (process == 0) {
    const auto made = SocketFolder::make(parent);
    if (!made.ok()) ::_exit(1);
    std::ofstream(made->path() + "/head") << "a socket";
    const ssize_t told = ::write(ends[1], made->path().data(), made->path().size());
    ::_exit(told < 0 ? 1 : (::kill(::getpid(), SIGKILL), 1));
  }
  ::close(ends[1]);
  int status = 0;
  EXPECT_EQ(::waitpid(process, &status, 0), process);
  EXPECT_TRUE(WIFSIGNALED(status));
  std::string path(4096, '\0');
  const ssize_t bytes = ::read(ends[0], path.data(), path.size());
  ::close(ends[0]);
  path.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  return path;
}

TEST(SocketFolder, IsForItsUserAloneAndGoesWithItsOwner) {
  const TemporaryFolder folder;
  const std::string parent = place_of(folder);
  std::optional<SocketFolder> made(SocketFolder::make(parent).value());
  struct stat facts {};
  ASSERT_EQ(::stat(made->path().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700U);
  EXPECT_EQ(made->address(), fmt::format("ipc://{}/head", made->path()));
  const std::string path = made->path();
  made.reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST(SocketFolder, WhatAKilledProcessLeftIsTakenAwayByTheNext) {
  const TemporaryFolder folder;
  const std::string parent = place_of(folder);
  const std::string left = left_by_killed(parent);
  ASSERT_TRUE(fs::exists(left + "/head"));
  const SocketFolder next = SocketFolder::make(parent).value();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(next.path()));
}

TEST(SocketFolder, OfOthersThatLiveNothingIsTaken) {
  const TemporaryFolder folder;
  const std::string parent = place_of(folder);
  const SocketFolder first = SocketFolder::make(parent).value();
  // As if it were of a process whose number nobody has any more: the lock counts.
  const fs::path renamed = fs::path(first.path()).replace_filename("troupe-2147483647-abcdef");
  fs::rename(first.path(), renamed);
  fs::create_directory(parent + "/troupe-12");
  fs::create_directory(parent + "/another");
  const SocketFolder second = SocketFolder::make(parent).value();
  EXPECT_TRUE(fs::exists(renamed));
  EXPECT_TRUE(fs::exists(parent + "/troupe-12"));
  EXPECT_TRUE(fs::exists(parent + "/another"));
}

// Killed before it had made its lock; or about to make it, which its number or its age tells.
TEST(SocketFolder, WithoutALockOnlyTheOldOnesOfDeadProcessesAreTaken) {
  const TemporaryFolder folder;
  const std::string parent = place_of(folder);
  const std::string young = parent + "/troupe-2147483647-young1";
  const std::string old = parent + "/troupe-2147483647-older1";
  const std::string living = fmt::format("{}/troupe-{}-living", parent, ::getpid());
  for (const std::string& folder : {young, old, living}) fs::create_directory(folder);
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(old, long_ago);
  fs::last_write_time(living, long_ago);
  const auto made = SocketFolder::make(parent);
  EXPECT_TRUE(fs::exists(young));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(living));
}

TEST(SocketFolder, AParentThatCannotBeUsedIsNamed) {
  const TemporaryFolder folder;
  const std::string parent = place_of(folder);
  const std::string missing = parent + "/missing";
  const std::string deep = parent + "/" + std::string(100, 'a');
  fs::create_directory(deep);
  for (const std::string& unusable : {missing, deep}) {
    const auto made = SocketFolder::make(unusable);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().kind, runtime::ErrorKind::kUsage);
    EXPECT_THAT(made.error().message, AllOf(HasSubstr(unusable), HasSubstr("TMPDIR")));
    EXPECT_TRUE(fs::is_empty(deep));
  }
}

}  // namespace
}  // namespace troupe::launch
