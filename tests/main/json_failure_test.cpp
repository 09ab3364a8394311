// What --json prints of a run or a check that fails before it has anything to print.

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/main/toy_run.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class JsonFailure : public ToyRun {
 protected:
  // The only line there is.
  static void expect_told(const ProcessEnd& end, int exit_code, const std::string& part) {
    EXPECT_EQ(end.exit_code, exit_code) << end.err;
    ASSERT_THAT(end.out, testing::EndsWith("}\n")) << end.err;
    EXPECT_EQ(end.out.find('\n'), end.out.size() - 1) << end.out;
    const JsonValue object = last_line(end);
    EXPECT_EQ(object["exit_code"].number(), exit_code);
    EXPECT_THAT(object["error"].text(), HasSubstr(part));
    EXPECT_THAT(end.err, HasSubstr(part));
  }
};

TEST_F(JsonFailure, IsAnObjectOfARunInOneProcessAndInSeveral) {
  std::filesystem::remove(path("toy.h5"));
  expect_told(run("a", {"--json"}), 4, "no such file");
  expect_told(run("b", {"--json", "--workers", "1"}), 4, "no such file");
  EXPECT_EQ(run("c").out, "");
}

TEST_F(JsonFailure, IsAnObjectOfATopologyAndOfACommandLineThatCannotBeMeant) {
  expect_told(run("a", {"--json", "--set", "model.zoo=none"}), 3, "model.zoo");
  expect_told(call({"check", path("toy.yaml"), "--json", "--set", "model.zoo=none"}), 3,
              "model.zoo");
  expect_told(run("a", {"--json", "--wrokers", "2"}), 2, "--wrokers");
}

}  // namespace
}  // namespace troupe
