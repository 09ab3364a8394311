#include "pipeline/data/dataset_paths.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/pipeline/data_fixture.h"

namespace troupe::pipeline {
namespace {

using Rows = std::vector<std::uint64_t>;

std::vector<std::string> ten_files(const std::string& particle) {
  std::vector<std::string> paths;
  for (int i = 0; i < 10; ++i) paths.push_back("/data/" + particle + "_" + std::to_string(i));
  return paths;
}

TEST(DatasetPaths, PatternsExpandSortedBytewiseWithoutRepeats) {
  const TemporaryFolder folder;
  for (const char* name : {"e_10.h5", "e_2.h5", "e_1.h5", "Z_1.h5", "x.txt"}) {
    std::ofstream(folder / name) << "x";
  }
  const auto paths = expand_paths({folder / "*.h5", folder / "e_2.h5"});
  ASSERT_TRUE(paths.ok());
  EXPECT_EQ(*paths, (std::vector<std::string>{folder / "Z_1.h5", folder / "e_1.h5",
                                              folder / "e_10.h5", folder / "e_2.h5"}));
}

TEST(DatasetPaths, OfSeveralNamesOfAFileTheFirstIsKept) {
  const TemporaryFolder folder;
  std::ofstream(folder / "e_1.h5") << "x";
  std::filesystem::create_symlink(folder / "e_1.h5", folder / "latest.h5");
  std::filesystem::create_hard_link(folder / "e_1.h5", folder / "copy.h5");
  const auto paths = expand_paths({folder / "*.h5", folder.path() + "/./e_1.h5"});
  ASSERT_TRUE(paths.ok());
  EXPECT_EQ(*paths, std::vector<std::string>{folder.path() + "/./e_1.h5"});
}

TEST(DatasetPaths, NameOfAFileIsNoPatternThoughItLooksLikeOne) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "sweep[12]");
  std::filesystem::create_directory(folder / "sweep1");
  for (const char* name : {"sweep[12]/a.h5", "sweep1/a.h5"}) std::ofstream(folder / name) << "x";
  const auto paths = expand_paths({folder / "sweep[12]/a.h5"});
  ASSERT_TRUE(paths.ok());
  EXPECT_EQ(*paths, std::vector<std::string>{folder / "sweep[12]/a.h5"});
}

TEST(DatasetPaths, SignsOfPatternsStandForThemselvesInBrackets) {
  const TemporaryFolder folder;
  const std::string odd = folder / R"(run[1]*\x)", escaped = folder / R"(run[[]1][*]\\x)";
  std::filesystem::create_directory(odd);
  for (const char* name : {"/a1.h5", "/a[1].h5", "/b.h5"}) std::ofstream(odd + name) << "x";
  const auto all = expand_paths({escaped + "/*.h5"});
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ(*all, (std::vector<std::string>{odd + "/a1.h5", odd + "/a[1].h5", odd + "/b.h5"}));
  const auto named = expand_paths({escaped + "/a[1].h5"});
  ASSERT_TRUE(named.ok()) << named.error().message;
  EXPECT_EQ(*named, (std::vector<std::string>{odd + "/a[1].h5"}));
}

TEST(DatasetPaths, PatternWithoutMatchIsAnError) {
  const TemporaryFolder folder;
  const auto paths = expand_paths({folder / "nothing_*.h5"});
  ASSERT_FALSE(paths.ok());
  EXPECT_EQ(paths.error().kind, runtime::ErrorKind::kData);
  EXPECT_EQ(paths.error().message, folder / "nothing_*.h5" + ": no file matches the pattern");
  EXPECT_FALSE(expand_paths({}).ok());
}

TEST(DatasetPaths, FewFilesAreSplitByTheirLastEvents) {
  const std::vector<std::string> paths{"a_1", "a_2"};
  const Rows rows{100, 25};
  EXPECT_EQ(split_rows(paths, rows, DataSplit::kTrain, {10}),
            (std::vector<FileRows>{{0, {0, 90}}, {1, {0, 23}}}));
  EXPECT_EQ(split_rows(paths, rows, DataSplit::kTest, {10}),
            (std::vector<FileRows>{{0, {90, 100}}, {1, {23, 25}}}));
  EXPECT_EQ(split_rows(paths, rows, DataSplit::kAll, {10}),
            (std::vector<FileRows>{{0, {0, 100}}, {1, {0, 25}}}));
}

TEST(DatasetPaths, TenFilesOfAParticleAreSplitByFileAndOthersAreNot) {
  std::vector<std::string> paths = ten_files("Ele");
  paths.push_back("/data/Pi0_0");
  const Rows rows(11, 20);
  const auto train = split_rows(paths, rows, DataSplit::kTrain, {10});
  const auto test = split_rows(paths, rows, DataSplit::kTest, {10});
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(train[i].rows, (RowRange{0, 20})) << i;
  EXPECT_EQ(train[9].rows, (RowRange{0, 0}));
  EXPECT_EQ(test[9].rows, (RowRange{0, 20}));
  EXPECT_EQ(train[10].rows, (RowRange{0, 18}));
  EXPECT_EQ(test[10].rows, (RowRange{18, 20}));
}

TEST(DatasetPaths, TrainAndTestTogetherAreEveryRowOnce) {
  for (const std::uint32_t one_in : {0u, 2u, 3u, 10u}) {
    const std::vector<std::string> paths = ten_files("Ele");
    const Rows rows{1, 2, 3, 9, 10, 11, 19, 20, 21, 1000};
    const auto train = split_rows(paths, rows, DataSplit::kTrain, {one_in});
    const auto test = split_rows(paths, rows, DataSplit::kTest, {one_in});
    for (std::size_t i = 0; i < paths.size(); ++i) {
      EXPECT_EQ(train[i].rows.first, 0u);
      EXPECT_EQ(train[i].rows.end, test[i].rows.first);
      EXPECT_EQ(test[i].rows.end, rows[i]);
      if (one_in == 0) {
        EXPECT_EQ(test[i].rows.first, rows[i]);
      }
    }
  }
}

TEST(DatasetPaths, PartsAreDisjointCompleteAndEqual) {
  for (const std::uint64_t all : {0u, 1u, 4u, 5u, 12u, 13u, 1000u}) {
    for (const std::uint32_t of : {1u, 2u, 5u, 7u}) {
      std::uint64_t end = all;
      for (std::uint32_t number = 0; number < of; ++number) {
        const RowRange part = part_of(all, {of, number});
        EXPECT_EQ(part.end, end);
        EXPECT_GE(part.end - part.first, all / of);
        EXPECT_LE(part.end - part.first, (all + of - 1) / of);
        end = part.first;
      }
      EXPECT_EQ(end, 0u);
      // As before there were parts.
      EXPECT_EQ(part_of(all, {of, 0}).first, all - all / of);
    }
  }
}

// Every row is tested in one part, and trained on in all others.
TEST(DatasetPaths, EachPartTrainsOnAllThatItDoesNotTest) {
  std::vector<std::string> paths = ten_files("Ele");
  paths.push_back("/data/Pi0_0");
  const Rows rows{1, 2, 3, 9, 10, 11, 19, 20, 21, 1000, 17};
  std::vector<std::vector<int>> tested, trained;
  for (const std::uint64_t count : rows) {
    tested.emplace_back(count, 0);
    trained.emplace_back(count, 0);
  }
  constexpr std::uint32_t kParts = 5;
  for (std::uint32_t number = 0; number < kParts; ++number) {
    for (const DataSplit split : {DataSplit::kTest, DataSplit::kTrain}) {
      auto& counts = split == DataSplit::kTest ? tested : trained;
      for (const auto& [file, range] : split_rows(paths, rows, split, {kParts, number})) {
        for (std::uint64_t row = range.first; row < range.end; ++row) ++counts[file][row];
      }
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(tested[i], std::vector<int>(rows[i], 1)) << i;
    EXPECT_EQ(trained[i], std::vector<int>(rows[i], kParts - 1)) << i;
  }
}

}  // namespace
}  // namespace troupe::pipeline
