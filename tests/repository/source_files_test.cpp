#include <gtest/gtest.h>

#include <algorithm>

#include "tests/repository/layers.h"
#include "tests/repository/source_tree.h"

namespace troupe::repository {
namespace {

constexpr std::size_t kLineLimit = 500;

std::vector<std::string> all_folders() {
  std::vector<std::string> folders = layer_folders();
  for (const char* other : {"tests", "bench", "fuzz", "tools", "cmake"})
    folders.emplace_back(other);
  return folders;
}

TEST(SourceFiles, NoneIsLongerThan500Lines) {
  const std::vector<SourceFile> sources =
      read_sources(all_folders(), {".h", ".cpp", ".cu", ".py", ".sh", ".cmake"});
  ASSERT_GT(sources.size(), 20u);
  for (const SourceFile& source : sources)
    EXPECT_LE(source.lines.size(), kLineLimit) << source.path << ": is it still one noun?";
}

TEST(SourceFiles, EveryHeaderBeginsWithPragmaOnce) {
  for (const SourceFile& header : read_sources(all_folders(), {".h"})) {
    ASSERT_FALSE(header.lines.empty()) << header.path;
    EXPECT_EQ(header.lines.front(), "#pragma once") << header.path;
  }
}

}  // namespace
}  // namespace troupe::repository
