#include "model/physics/shower_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "model/physics/figures_text.h"
#include "tests/model/physics_samples.h"

namespace troupe::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(BrightestCells, AreTheLargestInOrderAndOfEqualsTheFirst) {
  const std::vector<float> gev{0.5F, 0.0F, 2.0F, 0.5F, 1.0F, 0.5F};
  const BrightCells bright = brightest_cells(gev, 4);
  EXPECT_THAT(bright.cells, ElementsAre(2, 4, 0, 3));
  EXPECT_THAT(bright.gev, ElementsAre(2.0F, 1.0F, 0.5F, 0.5F));
  EXPECT_DOUBLE_EQ(bright.total_gev, 4.5);
}

TEST(BrightestCells, OfAnEmptyOrBrokenShowerAreWhatCanBeShown) {
  EXPECT_TRUE(brightest_cells(empty_image()).cells.empty());
  const std::vector<float> gev{std::nanf(""), 1.0F, std::numeric_limits<float>::infinity(), -2.0F};
  const BrightCells bright = brightest_cells(gev);
  EXPECT_THAT(bright.cells, ElementsAre(1));
  EXPECT_DOUBLE_EQ(bright.total_gev, -1.0);
}

TEST(EventsOverEnergies, AreNearestToTheMiddlesOfEqualParts) {
  const std::vector<float> energies{4.0F, 0.0F, 1.0F, 0.4F, 3.0F, 2.0F};
  EXPECT_THAT(events_over_energies(energies, 4), ElementsAre(3, 2, 4, 0));
  EXPECT_THAT(events_over_energies(energies, 1), ElementsAre(5));
}

TEST(EventsOverEnergies, AreDifferentOnesAndAllWhereThereAreFew) {
  EXPECT_THAT(events_over_energies(std::vector<float>(9, 1.0F), 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(events_over_energies(std::vector<float>{5.0F, 1.0F}, 4), ElementsAre(1, 0));
  EXPECT_TRUE(events_over_energies({}, 4).empty());
}

TEST(PairedHistogram, BinsFollowTheDataAndEveryGeneratedValueIsCounted) {
  const std::vector<double> data{10.0, 12.0, 30.0}, generated{0.0, 11.0, 1e9, 34.9};
  const PairedHistogram histogram = paired_histogram(data, generated, 3);
  EXPECT_DOUBLE_EQ(histogram.low, 5.0);
  EXPECT_DOUBLE_EQ(histogram.high, 35.0);
  EXPECT_THAT(histogram.data, ElementsAre(2, 0, 1));
  EXPECT_THAT(histogram.generated, ElementsAre(2, 0, 2));
}

TEST(PairedHistogram, HasARangeWhateverTheValues) {
  using Values = std::vector<double>;
  for (const Values& values :
       {Values{}, Values{0.0}, Values{0.0, 0.0}, Values{7.0, 7.0}, Values{1e-300, 2e-300},
        Values{1e6, 1e6 + 1e-10}, Values{0.0, 1e7}, Values{0.02, 0.021}}) {
    const PairedHistogram histogram = paired_histogram(values, values, 5);
    EXPECT_GE(histogram.low, 0.0);
    EXPECT_GT(histogram.high, histogram.low);
    EXPECT_TRUE(std::isfinite(histogram.high));
    const auto counted =
        std::accumulate(histogram.data.begin(), histogram.data.end(), std::int64_t{0});
    EXPECT_EQ(counted, static_cast<std::int64_t>(values.size()));
  }
}

StatisticsOptions options_of(const Extent& space, bool angle) {
  StatisticsOptions options;
  options.space = space;
  options.angle = angle;
  return options;
}

std::string json_of(std::uint64_t step, const ShowerSample& data, const ShowerSample& generated,
                    const std::vector<ShowerPair>& pairs) {
  return report_json(step, {data, data.statistics()}, {generated, generated.statistics()}, pairs);
}

TEST(ShowerReport, IsTheObjectThatWatchingDescribes) {
  const Extent space{2, 1, 2};
  ShowerSample data(options_of(space, false)), generated(options_of(space, false));
  const Image shower{1.0F, 0.0F, 0.5F, 0.00012345F};
  data.add(shower, 100.0);
  generated.add(empty_image(space), 100.0);
  ShowerPair pair;
  pair.energy_gev = 100.0;
  pair.data = brightest_cells(shower);
  const std::string json = json_of(8, data, generated, {pair});
  EXPECT_THAT(
      json,
      testing::StartsWith(
          R"({"step":8,"space":[2,1,2],"profiles":{"x":{"data":[1,0.5001],"generated":[0,0]},)"
          R"("y":{"data":[1.5],"generated":[0]},"z":{"data":[1.5,0.0001234],"generated":[0,0]}},)"
          R"("histograms":[{"name":"ecal / primary energy","low":)"));
  EXPECT_THAT(json, HasSubstr(R"("events":[{"energy":100,"angle":null,"data":{"total":1.5,)"
                              R"("cells":[0,2,3],"gev":[1,0.5,0.0001234]},)"
                              R"("generated":{"total":0,"cells":[],"gev":[]}}]})"));
  EXPECT_THAT(json, HasSubstr(R"({"name":"hits",)"));
  EXPECT_THAT(json, Not(HasSubstr(R"("angle",)")));
}

TEST(ShowerReport, HasAnglesOfModelsThatHaveThem) {
  const Extent space{5, 5, 5};
  ShowerSample data(options_of(space, true));
  for (const SampleEvent& event : random_sample(1, 5, space)) data.add(event.gev, event.energy_gev);
  ShowerPair pair;
  pair.angle_rad = 1.25;
  const std::string json = json_of(8, data, data, {pair});
  EXPECT_THAT(json, HasSubstr(R"({"name":"angle",)"));
  EXPECT_THAT(json, HasSubstr(R"("angle":1.25,)"));
}

// The Monitor's link has room for four of them.
TEST(ShowerReport, OfTheLargestModelsHasAtMost250Kilobytes) {
  const Extent space{51, 51, 25};
  ShowerSample data(options_of(space, true));
  std::vector<ShowerPair> pairs(kReportEvents);
  std::vector<float> gev(51 * 51 * 25);
  for (std::size_t event = 0; event < pairs.size(); ++event) {
    for (std::size_t i = 0; i < gev.size(); ++i) {
      gev[i] = 1.2345e-5F * static_cast<float>(i + event + 1) / 65025.0F;
    }
    data.add(gev, 123.456);
    pairs[event] = {123.456, 1.2345, brightest_cells(gev), brightest_cells(gev)};
  }
  const std::string json = json_of(123456789012, data, data, pairs);
  EXPECT_LT(json.size(), 250'000U);
  EXPECT_GT(json.size(), 100'000U);
}

TEST(FiguresText, ValuesHaveTheDigitsThatTheirUncertaintiesAllow) {
  Figure figure;
  EXPECT_EQ(value_text(figure), "-");
  EXPECT_EQ(floor_text(figure), "-");
  figure.value = 1.23456;
  figure.uncertainty = 0.0123;
  figure.floor = 0.0345;
  EXPECT_EQ(value_text(figure), "1.235");
  EXPECT_EQ(floor_text(figure), "0.035");
  figure.ideal = 1.0;
  EXPECT_EQ(floor_text(figure), "1 +- 0.035");
  figure.unit = "%";
  figure.value = 1234.5;
  figure.uncertainty = 120.0;
  EXPECT_EQ(value_text(figure), "1234 %");
  figure.value = 0.0;
  figure.uncertainty = 0.0;
  EXPECT_EQ(value_text(figure), "0.00 %");
  figure.value = 1e-9;
  EXPECT_EQ(value_text(figure), "1e-09 %");
}

TEST(FiguresText, LinesOfFiguresAndOfObservablesAreMarkedBeyondTheFloor) {
  std::vector<Figure> figures(4);
  figures[0].title = "mean response";
  figures[0].name = "response";
  figures[1].title = "left out";
  figures[2].name = "hits.separation";
  figures[3].name = "hits.chi_square";
  for (const std::size_t i : {0U, 2U, 3U}) figures[i].value = 0.5;
  figures[0].floor_95 = figures[3].floor_95 = 0.4;
  figures[2].floor_95 = 0.6;
  const std::string text = figures_text(figures);
  EXPECT_THAT(text, testing::ContainsRegex("mean response +0.50 +0 +0 +!\n"));
  EXPECT_THAT(text, testing::ContainsRegex("distributions +separation +chi_square\n"));
  EXPECT_THAT(text, testing::ContainsRegex("hits +0.5 \\(0\\) +0.5 \\(0\\)!\n"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("left out")));
}

}  // namespace
}  // namespace troupe::model
