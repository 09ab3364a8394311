#include "model/physics/roc.h"

#include <cmath>
#include <cstdint>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

namespace troupe::model {
namespace {

struct Case {
  std::vector<float> low, high;
  std::vector<std::uint32_t> times_low, times_high;
  double area = 0.0;  // by scikit-learn
};

// tests/oracle/roc_case.py writes and checks the file: an area, then lines of label, weight, score.
Case stored() {
  Case found;
  std::ifstream file(TROUPE_SOURCE_DIR "/tests/oracle/roc.txt");
  file >> found.area;
  int label = 0;
  std::uint32_t weight = 0;
  float score = 0.0F;
  while (file >> label >> weight >> score) {
    (label == 0 ? found.low : found.high).push_back(score);
    (label == 0 ? found.times_low : found.times_high).push_back(weight);
  }
  return found;
}

TEST(Roc, AreaIsThatOfScikitLearn) {
  const Case known = stored();
  ASSERT_GT(known.low.size(), 50u);
  ASSERT_GT(known.high.size(), 50u);
  const auto area = area_under_curve(known.low, known.times_low, known.high, known.times_high);
  ASSERT_TRUE(area.has_value());
  EXPECT_NEAR(*area, known.area, 1e-12);
}

TEST(Roc, AreaOfSamplesApartOfEqualOnesAndOfNone) {
  const std::vector<float> low{1.0F, 2.0F}, high{3.0F, 4.0F}, same{5.0F, 5.0F};
  const std::vector<std::uint32_t> once{1, 1}, never{0, 0};
  EXPECT_EQ(area_under_curve(low, once, high, once), 1.0);
  EXPECT_EQ(area_under_curve(high, once, low, once), 0.0);
  EXPECT_EQ(area_under_curve(same, once, same, once), 0.5);
  EXPECT_EQ(area_under_curve(low, once, high, never), std::nullopt);
}

TEST(Roc, NothingIsTheAreaOfValuesThatAreNoNumbers) {
  const std::vector<float> numbers{1.0F, 2.0F}, broken{NAN, 1.5F};
  const std::vector<std::uint32_t> once{1, 1};
  EXPECT_EQ(area_under_curve(numbers, once, broken, once), std::nullopt);
  EXPECT_EQ(area_under_curve(broken, once, numbers, once), std::nullopt);
}

}  // namespace
}  // namespace troupe::model
