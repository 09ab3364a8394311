#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/physics/comparison.h"
#include "model/physics/shower_sample.h"
#include "model/physics/table.h"
#include "tests/model/physics_samples.h"

namespace troupe::model {
namespace {

StatisticsOptions one_bin() {
  StatisticsOptions options;
  options.space = kSampleSpace;
  options.energy_bins = {{0.0, 500.0}};
  return options;
}

ShowerStatistics measured(const std::vector<SampleEvent>& sample,
                          const StatisticsOptions& options = one_bin()) {
  ShowerSample measured(options);
  for (const SampleEvent& event : sample) measured.add(event.gev, event.energy_gev);
  return measured.statistics();
}

SampleEvent along_z(const std::vector<double>& z_part, double energy_gev = 100.0) {
  return {separable_image({0, 1, 1, 0, 0}, {0, 1, 0, 1}, z_part), energy_gev};
}

TEST(Comparison, IdenticalSamplesDifferInNothing) {
  StatisticsOptions options = one_bin();
  options.energy_bins = equal_energy_bins(0.0, 500.0, 5);
  options.angle = true;
  ShowerSample data(options), generated(options);
  for (const SampleEvent& event : random_sample(3, 100)) {
    const double angle = data.add(event.gev, event.energy_gev).angle_rad;
    generated.add(event.gev, event.energy_gev, angle);
  }
  const Comparison c = compare(data.statistics(), generated.statistics());
  ASSERT_TRUE(c.merit.has_value());
  EXPECT_EQ(c.merit->total, 0.0);
  EXPECT_EQ(c.merit->angle, 0.0);
  EXPECT_EQ(c.merit->energy_bins, 5);
  for (const double error :
       {c.sampling_fraction_error, c.sampling_fraction_width_error, c.hits_error, c.moments_error,
        c.longitudinal_error, c.transverse_error, c.longitudinal_cell_error,
        c.transverse_cell_error, c.longitudinal_displacement, c.transverse_displacement,
        *c.correlation_difference, *c.layer_correlation_difference, c.ecal_separation}) {
    EXPECT_EQ(error, 0.0);
  }
  EXPECT_TRUE(c.unlike.empty());
}

TEST(Comparison, FigureOfMeritIsTheFormulaByHand) {
  // Per event 4 equal columns. d: z 0..3 with 2 2 2 2; g: 2 2 3 5. Energies 32 and 48.
  const auto data = measured({along_z({2, 2, 2, 2, 0, 0, 0})});
  const auto generated = measured({along_z({2, 2, 3, 5, 0, 0, 0})});
  const Comparison c = compare(data, generated);
  ASSERT_TRUE(c.merit.has_value());
  // g: mean (2 + 6 + 15) / 12 = 23/12; second moment (2 + 12 + 45) / 12 - (23/12)^2 = 179/144.
  const double mean_error = (23.0 / 12.0 - 1.5) / 1.5;
  const double width_error = std::abs(179.0 / 144.0 - 1.25) / 1.25;
  EXPECT_NEAR(c.merit->moments, (mean_error + width_error) / 6.0, 1e-13);
  // z: 0, 0, 1/2, 3/2 of 4 cells; x and y: every one 1/2 too much.
  EXPECT_NEAR(c.merit->profiles, (0.5 + 0.5 + 0.5) / 3.0, 1e-13);
  EXPECT_NEAR(c.merit->sampling_fraction, 0.5, 1e-13);
  EXPECT_FALSE(c.merit->angle.has_value());
  EXPECT_DOUBLE_EQ(c.merit->total,
                   c.merit->moments + c.merit->profiles + c.merit->sampling_fraction);
  EXPECT_EQ(c.merit->profile_cells_skipped, 3 + 2 + 3);
  EXPECT_EQ(c.merit->energy_bins, 1);
}

TEST(Comparison, ProfileErrorsWeighByEnergyInTheTableAndByCellInTheMerit) {
  const auto data = measured({along_z({90, 9, 1, 0, 0, 0, 0})});
  const auto generated = measured({along_z({90, 9, 2, 0, 0, 0, 0})});
  const Comparison c = compare(data, generated);
  EXPECT_NEAR(c.longitudinal_error, 0.01, 1e-12);
  EXPECT_NEAR(c.transverse_error, 0.01, 1e-12);
  EXPECT_NEAR(c.longitudinal_cell_error, 1.0 / 3.0, 1e-12);
  EXPECT_NEAR(c.transverse_cell_error, 0.01, 1e-12);
}

TEST(Comparison, DisplacementAlongXOrYIsTransverseAndAlongZLongitudinal) {
  const std::vector<double> z{1, 2, 1, 0, 0, 0, 0}, later{0, 1, 2, 1, 0, 0, 0};
  const auto data = measured({along_z(z)});
  const auto beside_x = measured({{separable_image({0, 2, 0, 0, 0}, {0, 1, 0, 1}, z), 100.0}});
  const auto beside_y = measured({{separable_image({0, 1, 1, 0, 0}, {0, 1.5, 0, 0.5}, z), 100.0}});
  EXPECT_NEAR(compare(data, beside_x).transverse_error, 0.5, 1e-12);
  EXPECT_NEAR(compare(data, beside_y).transverse_error, 0.25, 1e-12);
  EXPECT_NEAR(compare(data, beside_x).transverse_cell_error, 0.5, 1e-12);
  EXPECT_EQ(compare(data, beside_x).longitudinal_error, 0.0);
  EXPECT_EQ(compare(data, measured({along_z(later)})).transverse_error, 0.0);
  EXPECT_NEAR(compare(data, measured({along_z(later)})).longitudinal_error, 1.0, 1e-12);
}

// Mean response 2 % in both; the generator's is spread five times as wide.
TEST(Comparison, ResponseOfTheRightMeanAndTheWrongWidthIsTold) {
  const auto spread = [](double width) {
    std::vector<SampleEvent> sample;
    for (const double response : {0.02 - width, 0.02 + width}) {
      sample.push_back(along_z({100.0 * response / 4.0, 0, 0, 0, 0, 0, 0}));
    }
    return measured(sample);
  };
  const Comparison c = compare(spread(0.001), spread(0.005));
  EXPECT_NEAR(c.sampling_fraction_error, 0.0, 1e-6);
  EXPECT_NEAR(c.sampling_fraction_width_error, 4.0, 1e-4);
}

// Showers of 90 to 110 GeV in the middle of the front, each of 2 % of its energy times `factor`.
std::vector<SampleEvent> showers(double factor, const std::vector<double>& x,
                                 const std::vector<double>& z, bool energies_swapped = false) {
  std::vector<SampleEvent> sample;
  for (int i = 0; i <= 20; ++i) {
    const double energy = 90.0 + i, follows = energies_swapped ? 200.0 - energy : energy;
    SampleEvent event{separable_image(x, {0, 1, 2, 0}, z), energy};
    const double sum = std::accumulate(event.gev.begin(), event.gev.end(), 0.0);
    for (float& cell : event.gev) cell *= static_cast<float>(0.02 * factor * follows / sum);
    sample.push_back(event);
  }
  return sample;
}

TEST(Comparison, ShowersUnlikeTheDataAreFoundByEachOfFourBounds) {
  const std::vector<double> x{0, 1, 8, 1, 0}, z{1, 4, 6, 3, 1, 0.5, 0.1};
  const auto data = measured(showers(1, x, z));
  const auto unlike = [&](const std::vector<SampleEvent>& sample) {
    return compare(data, measured(sample)).unlike;
  };
  using Found = std::vector<Unlikeness>;
  EXPECT_EQ(unlike(showers(0.51, {0, 2, 7, 1, 0}, {1, 3, 5, 4, 2, 0.5, 0.1})), Found{});
  EXPECT_EQ(unlike(showers(0.49, x, z)), Found{Unlikeness::kResponse});
  EXPECT_EQ(unlike(showers(1.51, x, z)), Found{Unlikeness::kResponse});
  EXPECT_EQ(unlike(showers(1, x, {0, 1, 4, 6, 3, 1, 0.5})), Found{Unlikeness::kLongitudinal});
  EXPECT_EQ(unlike(showers(1, {1, 8, 1, 0, 0}, z)), Found{Unlikeness::kTransverse});
  EXPECT_EQ(unlike(showers(1, x, z, true)), Found{Unlikeness::kEnergy});
  // Random cells, whose sum is right.
  std::vector<SampleEvent> noise = random_sample(9, 21);
  for (std::size_t i = 0; i < noise.size(); ++i) {
    const double factor = (90.0 + static_cast<double>(i)) / noise[i].energy_gev;
    for (float& cell : noise[i].gev) cell *= static_cast<float>(factor);
    noise[i].energy_gev *= factor;
  }
  EXPECT_EQ(unlike(noise), (Found{Unlikeness::kLongitudinal, Unlikeness::kTransverse}));
}

// Random cells as data, as in tests: of them nothing more can be asked.
TEST(Comparison, NoiseResemblesNoise) {
  EXPECT_TRUE(
      compare(measured(random_sample(5, 50)), measured(random_sample(6, 50))).unlike.empty());
}

TEST(Comparison, EnergyWhereTheDataHaveNoneCountsInTheEnergyErrorOnly) {
  const auto data = measured({along_z({1, 1, 0, 0, 0, 0, 0})});
  const auto generated = measured({along_z({1, 1, 0, 0, 0, 0, 2})});
  const Comparison c = compare(data, generated);
  EXPECT_NEAR(c.longitudinal_error, 1.0, 1e-12);
  EXPECT_EQ(c.longitudinal_cell_error, 0.0);
}

TEST(Comparison, MeritAveragesOverBinsAndLeavesOutThoseWithoutEvents) {
  StatisticsOptions options = one_bin();
  options.energy_bins = equal_energy_bins(0.0, 500.0, 5);
  const std::vector<double> z{1, 2, 1, 0, 0, 0, 0}, twice{2, 4, 2, 0, 0, 0, 0};
  // Bins 0 and 1: right, and twice the energy. Bin 2: no generated event; bin 3: empty data.
  const auto data =
      measured({along_z(z, 50), along_z(z, 150), along_z(z, 250), {empty_image(), 350}}, options);
  const auto generated = measured({along_z(z, 50), along_z(twice, 150), along_z(z, 350)}, options);
  const Comparison c = compare(data, generated);
  ASSERT_TRUE(c.merit.has_value());
  EXPECT_EQ(c.merit->energy_bins, 2);
  EXPECT_EQ(c.merit->energy_bins_skipped, 3);
  EXPECT_NEAR(c.merit->moments, 0.0, 1e-14);
  EXPECT_NEAR(c.merit->profiles, 0.5, 1e-14);
  EXPECT_NEAR(c.merit->sampling_fraction, 0.5, 1e-13);
}

TEST(Comparison, AngleTermIsTheMeanOverBinsOfTheMeanOverEvents) {
  StatisticsOptions options = one_bin();
  options.energy_bins = {{0.0, 100.0}, {100.5, 200.0}};
  options.angle = true;
  ShowerSample data(options), generated(options);
  const SampleEvent straight{separable_image({0, 1, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 1, 1, 1, 1, 1}),
                             0.0};
  for (const double energy : {50.0, 60.0, 150.0}) data.add(straight.gev, energy);
  const double half_pi = std::numbers::pi / 2;
  generated.add(straight.gev, 50.0, half_pi);
  generated.add(straight.gev, 60.0, half_pi / 1.2);
  generated.add(straight.gev, 150.0, half_pi / 1.3);
  const Comparison c = compare(data.statistics(), generated.statistics());
  EXPECT_NEAR(*c.merit->angle, (0.1 + 0.3) / 2.0, 1e-6);
  EXPECT_DOUBLE_EQ(c.merit->total, *c.merit->angle);
}

TEST(Comparison, GeneratorOfNothingOrNonsenseGetsFiniteFigures) {
  const auto data = measured(random_sample(4, 20));
  std::vector<SampleEvent> nothing = random_sample(4, 20), nonsense = nothing;
  for (SampleEvent& event : nothing) event.gev = empty_image();
  for (SampleEvent& event : nonsense) event.gev[7] = std::numeric_limits<float>::quiet_NaN();
  for (const auto& sample : {nothing, nonsense}) {
    const Comparison c = compare(data, measured(sample));
    ASSERT_TRUE(c.merit.has_value());
    EXPECT_NEAR(c.merit->total, 3.0, 1e-12);
    EXPECT_DOUBLE_EQ(c.sampling_fraction_error, 1.0);
    EXPECT_DOUBLE_EQ(c.longitudinal_error, 1.0);
    EXPECT_DOUBLE_EQ(c.transverse_error, 1.0);
    EXPECT_DOUBLE_EQ(c.hits_error, 1.0);
    EXPECT_FALSE(c.correlation_difference.has_value());
    EXPECT_DOUBLE_EQ(c.ecal_separation, 1.0);
  }
}

TEST(Comparison, WithoutDataThereIsNoMerit) {
  const auto nothing = measured({});
  const auto some = measured(random_sample(4, 5));
  EXPECT_FALSE(compare(nothing, some).merit.has_value());
  EXPECT_FALSE(compare(nothing, nothing).merit.has_value());
  EXPECT_EQ(compare(nothing, nothing).longitudinal_error, 0.0);
  EXPECT_EQ(compare(nothing, some).longitudinal_error, 1.0);
}

TEST(ComparisonDeathTest, DifferentOptionsDoNotCompare) {
  StatisticsOptions other = one_bin();
  other.angle = true;
  EXPECT_DEATH(compare(measured({}), measured({}, other)), "options");
}

TEST(Table, ColumnsAlignAndTheDataHaveNoErrors) {
  const auto data = measured(random_sample(5, 50));
  std::vector<SampleEvent> dark = random_sample(5, 50);
  for (SampleEvent& event : dark) event.gev = empty_image();
  const std::vector<TableRow> rows{data_row("data", data),
                                   generated_row("generated", data, measured(random_sample(6, 50))),
                                   generated_row("untrained", data, measured(dark))};
  const std::string text = table_text(rows);
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  ASSERT_EQ(lines.size(), 14u) << text;
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(lines[i].size(), lines[0].size()) << text;
  for (const std::string& line : lines) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_NE(lines[1].find(" 2.000%       -  0.000%       - "), std::string::npos) << text;
  EXPECT_EQ(lines[1].back(), '-');
  EXPECT_NE(lines[3].find("100.0%"), std::string::npos) << text;
  EXPECT_TRUE(lines[3].ends_with(" 3 !")) << text;
  EXPECT_EQ(lines[4], "untrained: 50 showers without energy, 0 not finite, negative or too large");
  EXPECT_EQ(lines[5], "! untrained: nothing like the data, so that its merit means nothing:");
  EXPECT_EQ(lines[6], "  the response is off by 100.0%");
  EXPECT_EQ(lines[7], "  100.0% of the energy lies elsewhere along z");
  EXPECT_EQ(lines[8], "  100.0% of the energy lies elsewhere across the shower axis");
  EXPECT_EQ(lines[9], "  the energy does not follow the primary's");
}

TEST(Table, RowOfTheDataHasTheirFloor) {
  const auto data = measured(random_sample(5, 50));
  Comparison floor;
  floor.sampling_fraction_error = 0.012;
  floor.layer_correlation_difference = 0.0123;
  const std::string text = table_text(std::vector{data_row("data", data, floor)});
  EXPECT_THAT(text, testing::HasSubstr(" 2.000%   1.2%  0.000%   0.0%"));
  EXPECT_THAT(text, testing::HasSubstr(" 0.012      -\n"));
  EXPECT_THAT(row_json(data_row("data", data, floor)),
              testing::HasSubstr(R"("layer_correlation_difference": 0.0123)"));
}

TEST(Comparison, MeanIsOverThoseThatHaveANumber) {
  std::vector<Comparison> two(2);
  two[0].hits_error = 0.1;
  two[1].hits_error = 0.3;
  two[1].correlation_difference = 0.5;
  two[1].merit.emplace().total = 0.7;
  const Comparison mean = mean_of(two);
  EXPECT_DOUBLE_EQ(mean.hits_error, 0.2);
  EXPECT_EQ(mean.correlation_difference, 0.5);
  EXPECT_FALSE(mean.layer_correlation_difference.has_value());
  EXPECT_EQ(mean.merit->total, 0.7);
  EXPECT_FALSE(mean_of(std::vector<Comparison>(2)).merit.has_value());
}

TEST(Table, WarningSpeaksOfAMeritWhereThereIsOne) {
  TableRow row;
  row.name = "one";
  row.comparison = Comparison{};
  row.comparison->unlike = {Unlikeness::kEnergy};
  const auto text = [&] { return table_text(std::vector{row}); };
  EXPECT_THAT(text(), testing::HasSubstr("! one: nothing like the data:\n"));
  row.comparison->merit = FigureOfMerit{};
  EXPECT_THAT(text(), testing::HasSubstr(
                          "! one: nothing like the data, so that its merit means nothing:\n"));
}

TEST(Table, HitsThatNeitherSideHasAreNoAgreement) {
  TableRow row;
  row.name = "one";
  row.comparison = Comparison{};
  const auto text = [&] { return table_text(std::vector{row}); };
  EXPECT_THAT(text(), testing::ContainsRegex(" 0\\.0 +- "));
  row.comparison->hits_error = 1.0;
  EXPECT_THAT(text(), testing::ContainsRegex(" 0\\.0 +100\\.0% "));
}

TEST(Table, JsonHasEveryFigureAndNullForAbsentOnes) {
  TableRow row;
  row.name = "a \"b\"\n";
  row.events = 2;
  row.sampling_fraction = {0.02, 1e-7};
  EXPECT_EQ(
      row_json(row),
      R"({"name": "a \"b\"\u000a", "events": 2, "empty_events": 0, "invalid_events": 0, )"
      R"("sampling_fraction": {"mean": 0.02, "deviation": 1e-07}, )"
      R"("hits": {"mean": 0, "deviation": 0}, "comparison": null, "floor": null, "chosen": null})");
  row.comparison = Comparison{};
  row.comparison->longitudinal_error = 0.125;
  EXPECT_NE(row_json(row).find(R"("unlike": [])"), std::string::npos);
  row.comparison->unlike = {Unlikeness::kResponse, Unlikeness::kEnergy};
  EXPECT_NE(row_json(row).find(R"("unlike": ["response", "energy"])"), std::string::npos);
  EXPECT_NE(row_json(row).find(R"("longitudinal_error": 0.125)"), std::string::npos);
  EXPECT_NE(row_json(row).find(R"("merit": null)"), std::string::npos);
  row.comparison->merit = FigureOfMerit{};
  EXPECT_NE(row_json(row).find(R"("angle": null)"), std::string::npos);
  EXPECT_EQ(table_json({}), R"({"rows": []})");
  const std::vector<TableRow> rows{row, row};
  EXPECT_EQ(table_json(rows), "{\"rows\": [" + row_json(row) + ", " + row_json(row) + "]}");
}

}  // namespace
}  // namespace troupe::model
