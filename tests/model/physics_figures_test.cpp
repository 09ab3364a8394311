#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/physics/figures.h"
#include "model/physics/sample_comparer.h"
#include "model/physics/verdict.h"
#include "runtime/base/error.h"
#include "tests/model/physics_samples.h"

namespace troupe::model {
namespace {

using testing::Contains;
using testing::IsEmpty;

constexpr Extent kSpace{8, 8, 12};

// A shower of 2 % of the energy that begins at a random depth; spots fall off across the axis.
Image made_shower(std::uint64_t seed, std::uint32_t event, double energy_gev) {
  const runtime::RandomPosition position{seed, event, 0, 0, 0};
  Image image = empty_image(kSpace);
  std::uint32_t drawn = 0;
  const auto normal = [&] { return runtime::random_normal(position, drawn++); };
  const double response = 0.02 * (1.0 + 0.05 * normal());
  const double depth = 3.0 + 0.5 * std::log(energy_gev) + 0.8 * normal();
  constexpr int kSpots = 150;
  for (int spot = 0; spot < kSpots; ++spot) {
    const auto place = [&](double centre, double width, std::int64_t cells) {
      const auto found = static_cast<std::int64_t>(std::floor(centre + width * normal()));
      return std::clamp<std::int64_t>(found, 0, cells - 1);
    };
    const std::int64_t x = place(4.0, 0.9, kSpace[0]), y = place(4.0, 0.9, kSpace[1]);
    const std::int64_t z = place(depth, 1.6, kSpace[2]);
    image[cell_index(kSpace, x, y, z)] += static_cast<float>(response * energy_gev / kSpots);
  }
  return image;
}

double energy_of(std::uint32_t event) { return 20.0 + 60.0 * (event % 97) / 97.0; }

constexpr std::uint32_t kShowers = 240;

using Change = std::function<Image(std::uint32_t event, Image image)>;

// Showers of the same energies whatever the seed, each changed.
ShowerSample sample(std::uint64_t seed, const Change& change = {}) {
  StatisticsOptions options;
  options.space = kSpace;
  options.energy_bins = equal_energy_bins(20.0, 80.0, 3);
  ShowerSample made(options, true);
  for (std::uint32_t event = 0; event < kShowers; ++event) {
    Image image = made_shower(seed, event, energy_of(event));
    made.add(change ? change(event, std::move(image)) : image, energy_of(event));
  }
  return made;
}

const Backend* trainer() {
  static const auto backend = make_portable_backend();
  CHECK(backend.ok(), "this machine trains no classifier");
  return backend->get();
}

// Some figures take long, and not every test looks at them.
enum class Classifier { kNone, kTrained };

std::vector<Figure> figures_of(const ShowerSample& data, const ShowerSample& generated,
                               int replicas = 40, Classifier classifier = Classifier::kNone) {
  runtime::ThreadTeam team(1);
  FigureOptions options;
  options.replicas = replicas;
  if (classifier == Classifier::kTrained) options.classifier = trainer();
  return compute_figures(data, generated, options, team);
}

std::set<std::string> kinds_of_faults(const ShowerSample& data, const ShowerSample& generated) {
  std::set<std::string> kinds;
  const auto figures = figures_of(data, generated, 40, Classifier::kTrained);
  for (const Fault& fault : find_faults(data, generated, figures)) kinds.insert(fault.kind);
  return kinds;
}

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

TEST(Verdict, WrongPowerIsTold) {
  const auto kinds = kinds_of_faults(sample(1), sample(2, [](auto, Image image) {
                                       for (float& cell : image) cell = std::pow(cell, 0.85F);
                                       return image;
                                     }));
  EXPECT_THAT(kinds, Contains("power"));
  EXPECT_THAT(kinds, Contains("response"));
}

TEST(Verdict, LayersOutOfOrderAreToldWhetherTheyAreTheSameOfEveryShowerOrNot) {
  const auto shuffled = [](bool each) {
    return sample(2, [each](std::uint32_t event, const Image& image) {
      Image out(image.size());
      const std::int64_t turn = each ? event * 5 : 5;
      for (std::int64_t column = 0; column < kSpace[0] * kSpace[1]; ++column) {
        for (std::int64_t z = 0; z < kSpace[2]; ++z) {
          out[static_cast<std::size_t>(column * kSpace[2] + (z * 7 + turn) % kSpace[2])] =
              image[static_cast<std::size_t>(column * kSpace[2] + z)];
        }
      }
      return out;
    });
  };
  EXPECT_THAT(kinds_of_faults(sample(1), shuffled(false)), Contains("layers"));
  EXPECT_THAT(kinds_of_faults(sample(1), shuffled(true)), Contains("layers"));
}

TEST(Verdict, CopiesOfTheDataAreTold) {
  const ShowerSample copies = sample(2, [](std::uint32_t event, const Image& image) {
    return event % 2 == 0 ? made_shower(1, event, energy_of(event)) : image;
  });
  const auto figures = figures_of(sample(1), copies);
  EXPECT_NEAR(*find_figure(figures, "copies")->value, 50.0, 1.0);
  EXPECT_THAT(kinds_of_faults(sample(1), copies), Contains("copies"));
}

// Showers of three cells with any shares: neighbours are much nearer in a larger sample.
ShowerSample dense_sample(std::uint64_t seed, std::uint32_t count) {
  StatisticsOptions options;
  options.space = {1, 1, 3};
  options.energy_bins = {{0.0, 200.0}};
  ShowerSample made(options, true);
  for (std::uint32_t event = 0; event < count; ++event) {
    const runtime::RandomPosition position{seed, event, 0, 0, 0};
    Image image;
    for (std::uint32_t i = 0; i < 3; ++i) {
      image.push_back(static_cast<float>(0.1 + runtime::random_uniform(position, i)));
    }
    made.add(image, 50.0);
  }
  return made;
}

TEST(Verdict, GoodGeneratorCopiesNothingOfDataOfManyShowers) {
  const auto figures = figures_of(dense_sample(1, 6000), dense_sample(2, 2000), 20);
  const Figure& copies = *find_figure(figures, "copies");
  EXPECT_GT(*copies.value, 0.0);
  EXPECT_FALSE(copies.beyond_floor()) << *copies.value << " beyond " << copies.floor_95;
}

TEST(Verdict, CopiesOfDataThatRepeatThemselvesAreTold) {
  // Every tenth shower is the one before it.
  const auto repeated = [](std::uint64_t seed) {
    return sample(seed, [seed](std::uint32_t event, const Image& image) {
      return event % 10 == 9 ? made_shower(seed, event - 1, energy_of(event - 1)) : image;
    });
  };
  EXPECT_EQ(*find_figure(figures_of(repeated(1), repeated(1)), "copies")->value, 100.0);
  EXPECT_NEAR(*find_figure(figures_of(repeated(1), repeated(2)), "copies")->value, 0.0, 2.0);
}

TEST(Verdict, ShowersThatAreAllAlikeAreTold) {
  const ShowerSample alike = sample(2, [](std::uint32_t event, const Image&) {
    Image image = made_shower(2, 7, 50.0);
    for (float& cell : image) cell *= static_cast<float>(energy_of(event) / 50.0);
    image[event % 8] += 1e-4F;
    return image;
  });
  const auto kinds = kinds_of_faults(sample(1), alike);
  EXPECT_THAT(kinds, Contains("alike"));
  EXPECT_THAT(kinds, Contains("response_width"));
  EXPECT_THAT(kinds, Contains("length_spread"));
}

TEST(Verdict, ShowersThatAreTooMuchAlikeAreToldInOtherWords) {
  const ShowerSample data = sample(1), good = sample(2);
  std::vector<Figure> figures = figures_of(data, good);
  const auto told_at = [&](double value) -> std::string {
    std::ranges::find(figures, "diversity", &Figure::name)->value = value;
    for (const Fault& fault : find_faults(data, good, figures)) {
      if (fault.kind == "alike") return fault.text;
    }
    return "";
  };
  EXPECT_EQ(told_at(0.9), "");
  EXPECT_THAT(told_at(0.7), testing::StartsWith("the showers are too much alike: "));
  EXPECT_THAT(told_at(0.4), testing::StartsWith("the showers are all alike: "));
}

TEST(Verdict, ResponseOfTheRightMeanAndTheWrongWidthIsTold) {
  const ShowerSample data = sample(1);
  const ShowerSample wide = sample(2, [](std::uint32_t event, Image image) {
    const auto factor = static_cast<float>(1.0 + (event % 2 == 0 ? 0.2 : -0.2));
    for (float& cell : image) cell *= factor;
    return image;
  });
  const auto faults = find_faults(data, wide, figures_of(data, wide));
  ASSERT_FALSE(faults.empty());
  EXPECT_EQ(faults[0].kind, "response_width");
  EXPECT_THAT(faults[0].text, testing::StartsWith("the response is 4"));
  EXPECT_THAT(faults[0].text, testing::EndsWith(" times too wide"));
  EXPECT_EQ(verdict_line({}), "No fault was found.");
}

// Layers, moments and hits are those of the data, and only the two ends of the shower go together.
TEST(Verdict, WhatOnlyAClassifierSeesIsTold) {
  StatisticsOptions options;
  options.space = {1, 1, 4};
  const auto made = [&](std::uint64_t seed, bool together) {
    ShowerSample sample(options, true);
    for (std::uint32_t event = 0; event < 600; ++event) {
      const runtime::RandomPosition position{seed, event, 0, 0, 0};
      const auto sign = [&](std::uint32_t draw) {
        return runtime::random_uniform(position, draw) < 0.5 ? -1.0F : 1.0F;
      };
      const float a = sign(0), b = sign(1), c = together ? a * b : sign(2);
      sample.add(std::vector{0.3F + 0.1F * a, 0.3F + 0.1F * b, 0.3F + 0.1F * c, 0.3F}, 50.0);
    }
    return sample;
  };
  const ShowerSample data = made(1, false);
  const auto figures = figures_of(data, made(2, true), 20, Classifier::kTrained);
  EXPECT_FALSE(find_figure(figures, "layer_correlations")->distance() > 0.1);
  const Figure& area = *find_figure(figures, "auc");
  EXPECT_NEAR(*area.value, 0.75, 0.05);  // half of the data's showers are as the generated ones
  EXPECT_TRUE(area.beyond_floor());
  EXPECT_GT(area.uncertainty, 0.0);
  EXPECT_THAT(kinds_of_faults(data, made(2, true)), Contains("classifier"));
  const auto equal = figures_of(data, made(3, false), 20, Classifier::kTrained);
  EXPECT_FALSE(find_figure(equal, "auc")->beyond_floor());
}

TEST(Verdict, AreaBelowThatOfEqualSamplesIsNoFault) {
  const ShowerSample data = sample(1), good = sample(2);
  std::vector<Figure> figures = figures_of(data, good);
  const auto kinds_at = [&](double value) {
    Figure& area = *std::ranges::find(figures, "auc", &Figure::name);
    area.value = value;
    area.floor_95 = 0.05;
    std::set<std::string> kinds;
    for (const Fault& fault : find_faults(data, good, figures)) kinds.insert(fault.kind);
    return kinds;
  };
  EXPECT_THAT(kinds_at(0.35), testing::Not(Contains("classifier")));
  EXPECT_THAT(kinds_at(0.65), Contains("classifier"));
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

TEST(Verdict, DataThatCannotBeUsedAreNotTheGeneratorsFault) {
  // One in ten showers has an energy that no primary has; a generator is asked for it too.
  const auto with_odd_energies = [](std::uint64_t seed) {
    ShowerSample made(sample(1).options(), true);
    for (std::uint32_t event = 0; event < 100; ++event) {
      made.add(made_shower(seed, event, 50.0), event % 10 == 0 ? 0.01 : 50.0);
    }
    return made;
  };
  const ShowerSample data = with_odd_energies(1);
  const auto faults = kinds_of_faults(data, with_odd_energies(2));
  EXPECT_THAT(faults, testing::Not(Contains("invalid")));
  EXPECT_THAT(faults, testing::Not(Contains("energies")));
  const auto remarks = find_remarks(data, 3);
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_EQ(remarks[0].text,
            "the data: 3 of 103 showers have cells or a primary energy that no "
            "shower has; they are left out");
  EXPECT_EQ(remarks[1].text,
            "the data: 10 of 103 showers have a primary energy outside of 0.1 to "
            "1e6 GeV; they are left out");
  EXPECT_THAT(find_remarks(sample(1)), IsEmpty());
  EXPECT_THAT(kinds_of_faults(sample(1), with_odd_energies(2)), Contains("energies"));
}

TEST(Verdict, ShowersThatAFileHadBesidesAreTold) {
  const ShowerSample data = sample(1), good = sample(2);
  const auto faults = find_faults(data, good, figures_of(data, good), 60);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].kind, "left_out");
  EXPECT_THAT(faults[0].text, testing::StartsWith("60 of 300 showers have "));
}

TEST(Verdict, OtherEnergiesAreTold) {
  StatisticsOptions options = sample(1).options();
  ShowerSample higher(options, true);
  for (std::uint32_t event = 0; event < 100; ++event) higher.add(made_shower(1, event, 75.0), 75.0);
  EXPECT_THAT(kinds_of_faults(sample(1), higher), Contains("conditions"));
}

}  // namespace
}  // namespace troupe::model
