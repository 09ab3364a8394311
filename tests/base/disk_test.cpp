#include "runtime/base/disk.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace troupe::runtime {
namespace {

TEST(FileDisk, LinkLeadsToAFileBesideItAndIsReplacedByTheNext) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / fmt::format("disk_test_{}", ::getpid());
  std::filesystem::create_directories(folder);
  FileDisk disk;
  for (const char* name : {"one", "two"}) {
    std::ofstream(folder / name) << name;
    ASSERT_TRUE(disk.link((folder / "latest").string(), name).ok());
    EXPECT_EQ(std::filesystem::read_symlink(folder / "latest"), name);
  }
  EXPECT_EQ(disk.read((folder / "latest").string())->size(), 3u);
  EXPECT_EQ(disk.list(folder.string()).value(), (std::vector<std::string>{"latest", "one", "two"}));
  const auto refused = disk.link((folder / "none/latest").string(), "one");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kData);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace troupe::runtime
