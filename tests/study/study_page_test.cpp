#include "study/study_page.h"

#include <gmock/gmock.h>

#include <regex>

#include "tests/study/study_support.h"

namespace troupe::study {
namespace {

using testing::HasSubstr;
using testing::Not;

Dimension choice(std::string path, std::vector<std::string> values) {
  Dimension dimension;
  dimension.path = std::move(path);
  dimension.choice = std::move(values);
  return dimension;
}

// The page of a grid whose trials have these figures, one of each repeat.
std::string page_of(Study study, const std::vector<std::vector<double>>& figures) {
  study.seeds = static_cast<std::uint32_t>(figures.front().size());
  const auto method = make_method(study);
  EXPECT_EQ(method->trials(), figures.size());
  TrialBook book(study, *method, 1);
  for (std::uint32_t i = 0; i < figures.size(); ++i) {
    EXPECT_TRUE(book.propose(method->propose(i, {})).ok());
    for (std::uint32_t j = 0; j < study.seeds; ++j) {
      EXPECT_TRUE(book.begin({i, 0, j}).ok());
      EXPECT_TRUE(book.end({i, 0, j}, {figures[i][j], "", "abc", 0, 1.0}).ok());
    }
  }
  return study_html(study, book, {});
}

Study grid_of(Space space) {
  Study study;
  study.space = std::move(space);
  study.objective.minimise = "merit";
  study.method.kind = MethodKind::kGrid;
  return study;
}

// What stands in the bracket of a pattern, wherever it is found.
std::vector<double> numbers(const std::string& page, const std::string& pattern) {
  const std::regex wanted(pattern);
  std::vector<double> found;
  for (std::sregex_iterator at(page.begin(), page.end(), wanted), end; at != end; ++at) {
    found.push_back(std::stod((*at)[1]));
  }
  return found;
}

// Heights of the dots of the first picture, in the order of the trials.
std::vector<double> heights(const std::string& page) {
  return numbers(page.substr(0, page.find("</figure>")), "<circle [^>]*cy=\"([0-9.]+)\"");
}

TEST(StudyPage, FiguresThatDifferByOrdersStandOnALogarithmicScale) {
  const Study study = grid_of({choice("a", {"x", "y", "z"})});
  const auto near = heights(page_of(study, {{1.0}, {2.0}, {10.0}}));
  ASSERT_EQ(near.size(), 3u);
  EXPECT_GT(near[0] - near[1], 0.0);  // less is lower
  const auto far = heights(page_of(study, {{1.0}, {10.0}, {100.0}}));
  EXPECT_NEAR(far[0] - far[1], far[1] - far[2], 0.2);
  EXPECT_GT(far[1] - far[2], 50.0);
  Study largest = study;
  largest.objective = {};
  largest.objective.maximise = "events_per_second";
  const auto rates = heights(page_of(largest, {{1.0}, {10.0}, {100.0}}));
  EXPECT_NEAR(rates[1] - rates[0], rates[2] - rates[1], 0.2);
  EXPECT_LT(rates[2], rates[0]);  // more is higher
  // No logarithm tells figures of both signs apart.
  const auto both = heights(page_of(study, {{-1.0}, {0.0}, {100.0}}));
  EXPECT_LT(both[0] - both[1], 5.0);
}

TEST(StudyPage, RepeatsHaveABarOfTheirDeviation) {
  const std::string page = page_of(grid_of({choice("a", {"x", "y"})}), {{2.9, 3.1}, {9.0, 9.0}});
  const auto from = numbers(page, "<line class=\"bar\"[^>]*y1=\"([0-9.]+)\"");
  const auto to = numbers(page, "<line class=\"bar\"[^>]*y2=\"([0-9.]+)\"");
  const auto middle = heights(page);
  ASSERT_EQ(from.size(), 4u);  // two trials in two pictures
  EXPECT_NEAR((from[0] + to[0]) / 2, middle[0], 0.2);
  // The deviation of 2.9 and 3.1 is 0.141, and 6 lie between the two means.
  EXPECT_NEAR((from[0] - to[0]) / 2, (middle[0] - middle[1]) * std::sqrt(0.02) / 6.0, 0.2);
  EXPECT_EQ(from[1], to[1]);
  // A bar ends at the frame where it would pass 0.
  const std::string far = page_of(grid_of({choice("a", {"x", "y"})}), {{1.0, 99.0}, {1.0, 1.0}});
  EXPECT_EQ(numbers(far, "<line class=\"bar\"[^>]*y1=\"([0-9.]+)\"")[0], 200.0);
}

TEST(StudyPage, AGridHasALineForEachSettingOfTheOtherFields) {
  Dimension batch;
  batch.path = "train.micro_batch";
  batch.integer = {8, 24};
  batch.step = 8;
  const Study study = grid_of({choice("model.precision", {"fp32", "bf16"}), batch});
  const std::string page = page_of(study, {{1.0}, {2.0}, {3.0}, {4.0}, {5.0}, {6.0}});
  const std::string by_batch = page.substr(page.find("merit by micro_batch"));
  EXPECT_THAT(by_batch, HasSubstr("<li class=\"key g0\">fp32</li><li class=\"key g1\">bf16</li>"));
  const auto x = numbers(by_batch, "<circle class=\"dot g1\" cx=\"([0-9.]+)\"");
  ASSERT_EQ(x.size(), 3u);
  EXPECT_LT(x[0], x[1]);
  EXPECT_LT(x[1], x[2]);
  std::string points = "<polyline class=\"group g1\" points=\"";
  for (std::size_t i = 0; i < 3; ++i) {
    points += fmt::format("{:.1f},{:.1f} ", x[i],
                          numbers(by_batch, "<circle class=\"dot g1\"[^>]*cy=\"([0-9.]+)\"").at(i));
  }
  EXPECT_THAT(by_batch, HasSubstr(points));
  EXPECT_THAT(page, HasSubstr("<li class=\"key g2\">micro_batch 24</li>"));
  // Other methods have no two trials that differ in one field alone.
  Study random = study;
  random.method.kind = MethodKind::kRandom;
  random.method.trials = 2;
  EXPECT_THAT(page_of(random, {{1.0}, {2.0}}), Not(HasSubstr("class=\"key")));
}

TEST(StudyPage, LongValuesHaveNumbersAndStandBelow) {
  const Study study = grid_of({choice("rate", {"{g: 6e-4, d: 1e-3}", "1"})});
  const std::string page = page_of(study, {{1.0}, {2.0}});
  EXPECT_THAT(page, HasSubstr("<ol><li>{g: 6e-4, d: 1e-3}</li><li>1</li></ol>"));
  EXPECT_THAT(page, HasSubstr("text-anchor=\"middle\">2</text>"));
  EXPECT_THAT(page, Not(HasSubstr("text-anchor=\"middle\">{g")));
}

}  // namespace
}  // namespace troupe::study
