#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/physics/verdict.h"
#include "tests/model/made_showers.h"

namespace troupe::model {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

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

TEST(Verdict, FaultIsSurelyBeyondTheFloor) {
  const ShowerSample data = sample(1), good = sample(2);
  const std::vector<Figure> figures = figures_of(data, good);
  const auto kinds_at = [&](const char* name, double value, double floor_95) {
    std::vector<Figure> changed = figures;
    Figure& figure = *std::ranges::find(changed, name, &Figure::name);
    figure.value = value;
    figure.floor_95 = floor_95;
    std::set<std::string> kinds;
    for (const Fault& fault : find_faults(data, good, changed)) kinds.insert(fault.kind);
    return kinds;
  };
  EXPECT_THAT(kinds_at("longitudinal", 14.0, 10.0), testing::Not(Contains("longitudinal")));
  EXPECT_THAT(kinds_at("longitudinal", 16.0, 10.0), Contains("longitudinal"));
  EXPECT_THAT(kinds_at("response_energy", 14.0, 10.0), testing::Not(Contains("response_energy")));
  EXPECT_THAT(kinds_at("response_energy", 16.0, 10.0), Contains("response_energy"));
  EXPECT_THAT(kinds_at("response_width", 1.7, 0.5), testing::Not(Contains("response_width")));
  EXPECT_THAT(kinds_at("response_width", 1.8, 0.5), Contains("response_width"));
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

// Showers of one cell, of energies between 10 and 100 GeV by chance.
ShowerSample sample_of_any_energies(std::uint64_t seed, std::uint32_t count) {
  StatisticsOptions options;
  options.space = {1, 1, 1};
  ShowerSample made(options);
  for (std::uint32_t event = 0; event < count; ++event) {
    const double energy = 10.0 + 90.0 * runtime::random_uniform({seed, event, 0, 0, 0}, 0);
    made.add(std::vector{static_cast<float>(0.02 * energy)}, energy);
  }
  return made;
}

TEST(Verdict, OtherEnergiesByChanceAreNotTold) {
  // The means of two samples of 100 differ by 6.7 % on average of squares.
  constexpr std::uint64_t kPairs = 40;
  const auto figures = figures_of(sample_of_any_energies(1, 2), sample_of_any_energies(2, 2), 2);
  int told = 0;
  for (std::uint64_t pair = 0; pair < kPairs; ++pair) {
    for (const Fault& fault : find_faults(sample_of_any_energies(2 * pair, 100),
                                          sample_of_any_energies(2 * pair + 1, 100), figures)) {
      told += fault.kind == "conditions" ? 1 : 0;
    }
  }
  EXPECT_LE(told, 5);
}

TEST(Verdict, EnergiesThatDoNotFollowThePrimaryAreToldBesideAWrongMean) {
  const ShowerSample data = sample(1);
  const ShowerSample permuted = sample(2, [](std::uint32_t event, const Image&) {
    return made_shower(2, event, energy_of(event * 31));
  });
  const auto kinds = kinds_of_faults(data, permuted);
  EXPECT_THAT(kinds, Contains("response"));
  EXPECT_THAT(kinds, Contains("response_energy"));
  for (const float factor : {0.5F, 1.2F, 3.0F}) {
    const auto scaled = kinds_of_faults(data, sample(2, [factor](auto, Image image) {
                                          for (float& cell : image) cell *= factor;
                                          return image;
                                        }));
    EXPECT_THAT(scaled, Contains("response")) << factor;
    EXPECT_THAT(scaled, testing::Not(Contains("response_energy"))) << factor;
  }
}

TEST(Verdict, NothingElseIsToldOfShowersThatAreNone) {
  const auto kinds_of = [](float cell) {
    const ShowerSample same =
        sample(2, [cell](auto, const Image& image) { return Image(image.size(), cell); });
    return kinds_of_faults(sample(1), same);
  };
  EXPECT_THAT(kinds_of(0.0F), ElementsAre("empty"));
  EXPECT_THAT(kinds_of(1e30F), ElementsAre("invalid"));
  EXPECT_THAT(kinds_of(std::numeric_limits<float>::quiet_NaN()), ElementsAre("invalid"));
  ShowerSample one(sample(1).options(), true);
  EXPECT_THAT(kinds_of_faults(sample(1), one), ElementsAre("empty"));
  one.add(empty_image(kSpace), 50.0);
  EXPECT_THAT(kinds_of_faults(sample(1), one), ElementsAre("empty"));
}

TEST(Verdict, EmptyOrTooFewDataAreRemarksAndNoFaults) {
  const ShowerSample empty = sample(1, [](auto, auto) { return empty_image(kSpace); });
  EXPECT_THAT(kinds_of_faults(empty, sample(2)), IsEmpty());
  const auto of_empty = find_remarks(empty);
  ASSERT_EQ(of_empty.size(), 2u);
  EXPECT_EQ(of_empty[0].text, "the data: 240 of 240 showers have no energy");
  EXPECT_THAT(of_empty[1].text, testing::StartsWith("the data: 0 showers have energy; "));

  ShowerSample few(sample(1).options(), true);
  for (std::uint32_t event = 0; event < 2; ++event) few.add(made_shower(1, event, 50.0), 50.0);
  EXPECT_THAT(kinds_of_faults(few, sample(2)), IsEmpty());
  const auto of_few = find_remarks(few);
  ASSERT_EQ(of_few.size(), 1u);
  EXPECT_EQ(of_few[0].text,
            "the data: 2 showers have energy; against fewer than 5 nothing is told but showers "
            "that are none");
  for (std::uint32_t event = 2; event < 5; ++event) few.add(made_shower(1, event, 50.0), 50.0);
  EXPECT_THAT(find_remarks(few), IsEmpty());
}

}  // namespace
}  // namespace troupe::model
