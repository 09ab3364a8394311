// A run tells of nodes of its pools that are still there at its end.

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launch/folder/run_summary.h"
#include "launch/run/run_pools.h"
#include "tests/support/json_value.h"

namespace troupe::launch {
namespace {

using testing::HasSubstr;

std::string summary_with(const std::optional<std::vector<std::string>>& nodes_left) {
  return summary_json({}, {}, 4, {}, nodes_left, std::nullopt, 0);
}

TEST(NodesLeft, AreInTheSummary) {
  EXPECT_THAT(summary_with(std::nullopt), HasSubstr(R"("nodes_left":null)"));
  EXPECT_THAT(summary_with(std::vector<std::string>{}), HasSubstr(R"("nodes_left":[])"));
  EXPECT_THAT(summary_with(std::vector<std::string>{"hpc.0", "own.3"}),
              HasSubstr(R"("nodes_left":["hpc.0","own.3"])"));
}

TEST(NodesLeft, SummaryHasTheSameMembersHoweverARunEnds) {
  const auto names_of = [](const std::string& json) {
    const JsonValue parsed = parse_json(json);
    std::vector<std::string> names;
    for (const auto& [name, value] : std::get<JsonValue::Object>(parsed.content)) {
      names.push_back(name);
    }
    return names;
  };
  EXPECT_EQ(names_of(summary_of_failure("no data", 4)), names_of(summary_with(std::nullopt)));
}

TEST(NodesLeft, AreToldWithTheCommandThatEndsThem) {
  EXPECT_EQ(left_text({}, "runs/a"), "");
  EXPECT_EQ(
      left_text({{.name = "own.0", .pool = "own", .id = "vm-1"}, {"own.1", "own"}}, "runs/a b"),
      "still there, and may cost money: own.0 (vm-1), own.1 (no id is known); end what is "
      "left with: troupe pools 'runs/a b' --stop");
  EXPECT_THAT(left_text(std::vector<actors::PoolNode>(1000, {"own.7", "own"}), "a"),
              HasSubstr(", 984 more; end"));
}

}  // namespace
}  // namespace troupe::launch
