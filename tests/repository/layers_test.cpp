#include "tests/repository/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::repository {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The judgement on one file of one line, in a repository where every header under a layer exists.
std::vector<std::string> judge(const std::string& path, const std::string& line) {
  return refused_includes({path, {line}}, [](const std::string& included) {
    return included.find('/') != std::string::npos && !included.starts_with("sys/");
  });
}

TEST(Layers, IncludeAgainstTheDirectionIsRefusedWithItsPlace) {
  const SourceFile file = {"model/a.h", {"#pragma once", "", "#include \"actors/replica.h\""}};
  EXPECT_THAT(refused_includes(file, [](const std::string&) { return true; }),
              ElementsAre("model/a.h:3: actors/replica.h: actors is not visible from model"));
}

TEST(Layers, EachLayerIsRefusedItsRightHandNeighbour) {
  const std::vector<std::string> order = {"runtime/base", "model",  "pipeline", "config",
                                          "actors",       "launch", "study",    "main"};
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    const std::string leftward = "#include \"" + order[i] + "/x.h\"";
    const std::string rightward = "#include \"" + order[i + 1] + "/x.h\"";
    EXPECT_EQ(judge(order[i] + "/a.cpp", rightward).size(), 1u) << order[i];
    EXPECT_THAT(judge(order[i + 1] + "/a.cpp", leftward), IsEmpty()) << order[i + 1];
  }
}

TEST(Layers, RestOfRuntimeIsSeenFromConfigOnly) {
  const std::string include = "#include \"runtime/actor.h\"";
  for (const char* path : {"runtime/base/a.h", "model/a.h", "pipeline/a.h"})
    EXPECT_EQ(judge(path, include).size(), 1u) << path;
  for (const char* path : {"runtime/a.h", "config/a.h", "actors/a.h", "main/a.h"})
    EXPECT_THAT(judge(path, include), IsEmpty()) << path;
  EXPECT_EQ(judge("runtime/a.h", "#include \"model/tensor.h\"").size(), 1u);
}

TEST(Layers, TelemetrySeesBaseAloneAndIsSeenFromConfigOn) {
  const std::string include = "#include \"telemetry/history.h\"";
  for (const char* path : {"runtime/base/a.h", "runtime/a.h", "model/a.h", "pipeline/a.h"})
    EXPECT_EQ(judge(path, include).size(), 1u) << path;
  for (const char* path : {"telemetry/a.h", "config/a.h", "actors/a.h", "launch/a.h", "main/a.h"})
    EXPECT_THAT(judge(path, include), IsEmpty()) << path;
  EXPECT_THAT(judge("telemetry/a.h", "#include \"runtime/base/error.h\""), IsEmpty());
  for (const char* header : {"runtime/actor.h", "model/tensor.h", "actors/monitor.h"})
    EXPECT_EQ(judge("telemetry/a.h", "#include \"" + std::string(header) + "\"").size(), 1u)
        << header;
}

TEST(Layers, NeighbouringHeaderWithoutItsFolderIsRefused) {
  EXPECT_EQ(judge("model/a.cpp", "#include \"a.h\"").size(), 1u);
}

TEST(Layers, OwnHeaderInAngleBracketsIsRefused) {
  EXPECT_EQ(judge("model/a.cpp", "  #  include <actors/replica.h>").size(), 1u);
}

TEST(Layers, LayerThatIncludesTestsIsRefused) {
  EXPECT_EQ(judge("model/a.cpp", "#include \"tests/model/helper.h\"").size(), 1u);
}

TEST(Layers, LibrariesAreNobodysLayer) {
  EXPECT_THAT(judge("model/a.cpp", "#include <vector>"), IsEmpty());
  EXPECT_THAT(judge("runtime/base/a.cpp", "#include <sys/stat.h>"), IsEmpty());
}

TEST(Layers, TestsAndBenchesIncludeWhatTheyLike) {
  EXPECT_THAT(judge("tests/model/a.cpp", "#include \"main/commands.h\""), IsEmpty());
  EXPECT_THAT(judge("bench/a.cpp", "#include \"main/commands.h\""), IsEmpty());
}

TEST(Layers, TheTreeFollowsThem) {
  const std::vector<SourceFile> sources = read_sources(layer_folders(), {".h", ".cpp", ".cu"});
  ASSERT_GT(sources.size(), 20u) << "found too few sources to judge in " << root();
  const auto exists = [](const std::string& path) {
    return std::filesystem::is_regular_file(root() / path);
  };
  for (const SourceFile& source : sources) EXPECT_THAT(refused_includes(source, exists), IsEmpty());
}

}  // namespace
}  // namespace troupe::repository
