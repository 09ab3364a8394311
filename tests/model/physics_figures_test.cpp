#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/physics/figures.h"
#include "model/physics/sample_comparer.h"
#include "tests/model/made_showers.h"

namespace troupe::model {
namespace {

using testing::Contains;
using testing::IsEmpty;

TEST(Figures, OfAGoodGeneratorAreAtTheirFloorsAndShowNoFault) {
  const ShowerSample data = sample(1), good = sample(2);
  const std::vector<Figure> figures = figures_of(data, good, 100, Classifier::kTrained);
  int known = 0, beyond = 0;
  for (const Figure& figure : figures) {
    if (!figure.value) continue;
    ++known;
    beyond += figure.beyond_floor() ? 1 : 0;
    EXPECT_LT(figure.distance(), 4.0 * figure.floor_95 + 1e-9) << figure.name;
    EXPECT_GE(figure.floor_95, figure.floor) << figure.name;
    EXPECT_FALSE(figure.source.empty()) << figure.name;
  }
  EXPECT_GT(known, 80);
  EXPECT_LT(beyond, known / 5);  // 5 % on average
  EXPECT_THAT(kinds_of_faults(data, good), IsEmpty());
}

TEST(Figures, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Figure& figure : figure_list(true)) EXPECT_TRUE(names.insert(figure.name).second);
  EXPECT_EQ(find_figure(figure_list(false), "angle.kolmogorov"), nullptr);
}

TEST(Figures, AreAPureFunctionOfSeedAndSamplesWhateverTheThreads) {
  const ShowerSample data = sample(1), generated = sample(2);
  FigureOptions options;
  options.replicas = 20;
  options.classifier = trainer();
  runtime::ThreadTeam one(1), three(3);
  const auto a = compute_figures(data, generated, options, one);
  const auto b = compute_figures(data, generated, options, three);
  options.seed = 2;
  const auto c = compute_figures(data, generated, options, one);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].value, b[i].value);
    EXPECT_EQ(a[i].uncertainty, b[i].uncertainty);
    EXPECT_EQ(a[i].floor_95, b[i].floor_95);
  }
  EXPECT_NE(find_figure(a, "response")->uncertainty, find_figure(c, "response")->uncertainty);
  EXPECT_NE(find_figure(a, "auc")->value, find_figure(c, "auc")->value);
}

TEST(Figures, OneAloneIsThatOfAll) {
  const ShowerSample data = sample(1), generated = sample(2);
  runtime::ThreadTeam team(1);
  FigureOptions options;
  options.replicas = 2;
  options.classifier = trainer();
  const auto all = compute_figures(data, generated, options, team);
  for (const char* name : {"merit", "response_energy", "layer_separation", "diversity", "frechet",
                           "kernel", "auc", "hits.wasserstein"}) {
    const Figure one = compute_figure(name, data, generated, options, team);
    EXPECT_EQ(one.value, find_figure(all, name)->value) << name;
    EXPECT_EQ(one.ideal, find_figure(all, name)->ideal) << name;
  }
  EXPECT_EQ(compute_figure("angle.wasserstein", data, generated, options, team).value,
            std::nullopt);
  EXPECT_TRUE(follows_from_sums("merit"));
  EXPECT_FALSE(follows_from_sums("auc"));
}

TEST(Figures, WordsForThemAreTheirNamesAndThatOfTheOriginal) {
  EXPECT_EQ(figure_meant("sampling_fraction"), "response_energy");
  EXPECT_EQ(figure_meant("beauty"), "");
  EXPECT_THAT(figure_words(), testing::SizeIs(figure_list(true).size() + 1));
  for (const std::string& word : figure_words()) EXPECT_NE(figure_meant(word), "") << word;
}

TEST(Figures, EndEarlyWhenTheyAreToldTo) {
  const ShowerSample data = sample(1);
  runtime::ThreadTeam team(1);
  FigureOptions options;
  options.going_on = [](double share) { return share < 0.3; };
  EXPECT_THAT(compute_figures(data, data, options, team), IsEmpty());
}

// Whatever the showers, numbers come out.
TEST(Figures, OfNothingAndOfNonsenseAreFinite) {
  const ShowerSample data = sample(1);
  const ShowerSample empty = sample(1, [](auto, auto) { return empty_image(kSpace); });
  const ShowerSample nonsense = sample(1, [](auto, Image image) {
    image[3] = std::numeric_limits<float>::quiet_NaN();
    return image;
  });
  StatisticsOptions options = data.options();
  ShowerSample single(options, true), none(options, true);
  single.add(made_shower(1, 1, 50.0), 50.0);
  for (const ShowerSample* generated :
       std::initializer_list<const ShowerSample*>{&empty, &nonsense, &single, &none}) {
    for (const Figure& figure : figures_of(data, *generated, 4)) {
      EXPECT_TRUE(std::isfinite(figure.value.value_or(0.0))) << figure.name;
      EXPECT_TRUE(std::isfinite(figure.uncertainty)) << figure.name;
      EXPECT_TRUE(std::isfinite(figure.floor_95)) << figure.name;
    }
    figures_of(*generated, data, 4);
  }
  EXPECT_THAT(kinds_of_faults(data, empty), Contains("empty"));
  EXPECT_THAT(kinds_of_faults(data, nonsense), Contains("invalid"));
}

// One cell of each layer, so that the truth is known: response 0.02 x `factor`, its width
// 0.002 x `width`, normal.
ShowerSample narrow_sample(std::uint64_t seed, double factor, double width) {
  StatisticsOptions options;
  options.space = {1, 1, 2};
  options.energy_bins = {{0.0, 200.0}};
  ShowerSample made(options);
  for (std::uint32_t event = 0; event < 80; ++event) {
    const runtime::RandomPosition position{seed, event, 0, 0, 0};
    const double energy = 50.0 + event;
    const double response = 0.02 * factor + 0.002 * width * runtime::random_normal(position, 0);
    const double front = 0.5 + 0.05 * runtime::random_normal(position, 1);
    made.add(std::vector<float>{static_cast<float>(energy * response * front),
                                static_cast<float>(energy * response * (1.0 - front))},
             energy);
  }
  return made;
}

TEST(Figures, UncertaintiesCoverTheTruthAsOftenAsTheySay) {
  constexpr int kExperiments = 100;
  const std::vector<std::pair<const char*, double>> truths{
      {"response", 1.1}, {"response_width", 1.5}, {"depth", 0.0}};
  std::vector<int> within_one(truths.size()), within_two(truths.size());
  for (std::uint64_t experiment = 0; experiment < kExperiments; ++experiment) {
    const auto figures = figures_of(narrow_sample(2 * experiment, 1.0, 1.0),
                                    narrow_sample(2 * experiment + 1, 1.1, 1.5), 50);
    for (std::size_t i = 0; i < truths.size(); ++i) {
      const Figure& figure = *find_figure(figures, truths[i].first);
      const double off = std::abs(*figure.value - truths[i].second) / figure.uncertainty;
      within_one[i] += off < 1.0 ? 1 : 0;
      within_two[i] += off < 2.0 ? 1 : 0;
    }
  }
  for (std::size_t i = 0; i < truths.size(); ++i) {
    // 68 and 95 in 100; three standard deviations of counting beside.
    EXPECT_NEAR(within_one[i], 68, 14) << truths[i].first;
    EXPECT_GE(within_two[i], 88) << truths[i].first;
  }
}

TEST(Figures, FloorIsExceededByOneInTwentyGoodGenerators) {
  constexpr int kExperiments = 100;
  const std::vector<const char*> names{"response",
                                       "response_width",
                                       "longitudinal",
                                       "response.kolmogorov",
                                       "response.chi_square",
                                       "response.separation",
                                       "depth.separation",
                                       "layer_separation"};
  std::vector<int> beyond(names.size());
  for (std::uint64_t experiment = 0; experiment < kExperiments; ++experiment) {
    const auto figures = figures_of(narrow_sample(2 * experiment, 1.0, 1.0),
                                    narrow_sample(2 * experiment + 1, 1.0, 1.0), 50);
    for (std::size_t i = 0; i < names.size(); ++i) {
      beyond[i] += find_figure(figures, names[i])->beyond_floor() ? 1 : 0;
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_LE(beyond[i], 12) << names[i];
}

// The bins that one sample of few showers fills and another one does not are in the floor too.
TEST(Figures, FloorOfASeparationIsWhatEqualSamplesHave) {
  double found = 0.0, floor = 0.0;
  for (std::uint64_t experiment = 0; experiment < 40; ++experiment) {
    for (const Figure& figure : figures_of(narrow_sample(2 * experiment, 1.0, 1.0),
                                           narrow_sample(2 * experiment + 1, 1.0, 1.0), 20)) {
      if (figure.name != "depth.separation" && figure.name != "response.separation") continue;
      found += figure.distance();
      floor += figure.floor;
    }
  }
  EXPECT_NEAR(found / floor, 1.0, 0.1);
}

TEST(CompareWithItself, IsWhatAGoodGeneratorHas) {
  const ShowerSample data = sample(1), good = sample(2);
  const Comparison floor = compare_with_itself(data);
  const Comparison found = compare(data.statistics(), good.statistics());
  for (const ComparisonNumber& number : comparison_numbers()) {
    EXPECT_GT(floor.*number.value, 0.0) << number.name;
    EXPECT_LT(found.*number.value, 4.0 * floor.*number.value) << number.name;
  }
  EXPECT_LT(*found.layer_correlation_difference, 3.0 * *floor.layer_correlation_difference);
  EXPECT_LT(found.merit->total, 3.0 * floor.merit->total);
}

TEST(Figures, AreaWithoutAFloorIsLeftOut) {
  ShowerSample few(sample(1).options(), true);
  for (std::uint32_t event = 0; event < 7; ++event) {
    few.add(made_shower(1, event, energy_of(event)), energy_of(event));
  }
  const auto figures = figures_of(few, sample(2), 4, Classifier::kTrained);
  EXPECT_EQ(find_figure(figures, "auc")->value, std::nullopt);
  EXPECT_NE(find_figure(figures, "response")->value, std::nullopt);
}

}  // namespace
}  // namespace troupe::model
