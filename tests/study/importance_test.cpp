#include "study/importance.h"

#include <gmock/gmock.h>

#include <functional>

#include "tests/study/study_support.h"

namespace troupe::study {
namespace {

std::vector<double> importance_in(const Space& space, std::uint32_t trials,
                                  const std::function<double(const Point&)>& cost) {
  std::vector<Observation> ended;
  for (std::uint32_t i = 0; i < trials; ++i) {
    const Point point = random_point(space, 4, i);
    ended.push_back({point, cost(point)});
  }
  return importance_of(space, ended);
}

// Over the unit square 9 a^2 has a variance of 81 (1/5 - 1/9) = 7.2, and b one of 1/12.
TEST(Importance, SharesAreThoseOfTheVariance) {
  const Space space{linear("a", 0.0, 1.0), linear("b", 0.0, 1.0), linear("c", 0.0, 1.0)};
  const auto shares = importance_in(
      space, 60, [](const Point& point) { return 9.0 * point[0] * point[0] + point[1]; });
  ASSERT_EQ(shares.size(), 3u);
  EXPECT_NEAR(shares[0], 0.9886, 0.05);
  EXPECT_NEAR(shares[1], 0.0114, 0.05);
  EXPECT_NEAR(shares[2], 0.0, 0.05);
}

// Neither field tells anything by itself.
TEST(Importance, FieldsThatActOnlyTogetherHaveNoneOfTheirOwn) {
  const Space space{linear("a", -1.0, 1.0), linear("b", -1.0, 1.0)};
  const auto shares =
      importance_in(space, 60, [](const Point& point) { return point[0] * point[1]; });
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_LT(shares[0] + shares[1], 0.1);
}

TEST(Importance, ChoiceOnWhichOthersHangHasWhatItDecides) {
  const auto shares = importance_in(
      hanging_space(), 60, [](const Point& point) { return point[0] == 0.0 ? point[2] : 5.0; });
  ASSERT_EQ(shares.size(), 5u);
  EXPECT_GT(shares[0], 0.8);
  EXPECT_LT(shares[1], 0.1);
}

TEST(Importance, IsNotToldByFewTrialsOrEqualOnes) {
  const Space space{linear("a", 0.0, 1.0)};
  const auto slope = [](const Point& point) { return point[0]; };
  EXPECT_TRUE(importance_in(space, 4, slope).empty());
  EXPECT_EQ(importance_in(space, 5, slope).size(), 1u);
  EXPECT_TRUE(importance_in(space, 30, [](const Point&) { return 2.0; }).empty());
  std::vector<Observation> failed(30, {{0.5}, std::nullopt});
  EXPECT_TRUE(importance_of(space, failed).empty());
}

}  // namespace
}  // namespace troupe::study
