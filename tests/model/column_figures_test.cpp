// Columns that are made with showers, against those of the data.

#include "model/physics/column_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "tests/model/physics_samples.h"

namespace troupe::model {
namespace {

constexpr std::uint32_t kEvents = 400;

class ColumnFiguresTest : public testing::Test {
 protected:
  ColumnFiguresTest() : sample_(StatisticsOptions{.space = kSampleSpace}) {
    for (const SampleEvent& event : random_sample(3, kEvents)) {
      sample_.add(event.gev, event.energy_gev);
    }
  }
  // factor E / GeV + shift, and noise that is drawn for the seed.
  SampledColumn column(std::uint64_t seed, double factor, double shift) const {
    SampledColumn made{"shower.leak", {}};
    for (std::uint32_t i = 0; i < kEvents; ++i) {
      const double noise = runtime::random_normal({seed, i, 0, 0, 0}, 0);
      made.numbers.push_back(factor * sample_.showers()[i].energy_gev + shift + 50.0 * noise);
    }
    return made;
  }
  std::vector<Figure> figures(const SampledColumn& data, const SampledColumn& generated) {
    const std::vector<SampledColumn> of_data{data}, of_generated{generated};
    return compute_column_figures({sample_, of_data}, {sample_, of_generated},
                                  {.replicas = 60, .seed = 5}, team_);
  }
  static const Figure& of(const std::vector<Figure>& figures, const std::string& name) {
    const Figure* const figure = find_figure(figures, name);
    CHECK(figure != nullptr, "no such figure");
    return *figure;
  }

  ShowerSample sample_;
  runtime::ThreadTeam team_{2};
};

TEST_F(ColumnFiguresTest, ColumnsOfTheSameLawAreSeldomToldApart) {
  int beyond = 0, all = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    for (const Figure& figure : figures(column(seed, 1.0, 0.0), column(seed + 1000, 1.0, 0.0))) {
      ASSERT_TRUE(figure.value) << figure.name;
      EXPECT_GT(figure.floor, 0.0) << figure.name;
      EXPECT_GT(figure.uncertainty, 0.0) << figure.name;
      beyond += figure.beyond_floor() ? 1 : 0;
      ++all;
    }
  }
  EXPECT_GT(beyond, 0);
  EXPECT_LT(beyond, all / 10) << "of " << all;
}

// Energies of 10 to 490 GeV with a deviation of some 140, and the noise.
TEST_F(ColumnFiguresTest, ShiftIsToldInWidthsOfTheData) {
  const auto shifted = figures(column(1, 1.0, 0.0), column(3, 1.0, 75.0));
  const Figure& distance = of(shifted, "column.shower.leak.wasserstein");
  EXPECT_NEAR(*distance.value, 0.5, 0.05);
  EXPECT_TRUE(distance.beyond_floor());
  EXPECT_TRUE(of(shifted, "column.shower.leak.kolmogorov").beyond_floor());
  EXPECT_FALSE(of(shifted, "column_correlations").beyond_floor());
}

// The same numbers as before in another order, so that they do not follow the energy.
TEST_F(ColumnFiguresTest, NumbersThatDoNotFollowTheEnergyAreFoundByTheirCorrelations) {
  SampledColumn turned = column(1, 1.0, 0.0);
  std::rotate(turned.numbers.begin(), turned.numbers.begin() + kEvents / 3, turned.numbers.end());
  const auto found = figures(column(1, 1.0, 0.0), turned);
  EXPECT_EQ(of(found, "column.shower.leak.kolmogorov").value, 0.0);
  const Figure& correlations = of(found, "column_correlations");
  EXPECT_NEAR(*correlations.value, 0.94, 0.1) << "of the energy; the response does not vary";
  EXPECT_TRUE(correlations.beyond_floor());
}

TEST_F(ColumnFiguresTest, EachColumnHasItsOwnFigures) {
  const auto leak = column(1, 1.0, 0.0);
  SampledColumn other{"other", leak.numbers}, opposite = other;
  for (double& number : opposite.numbers) number = 3000.0 - number;
  const std::vector<SampledColumn> data{leak, other}, generated{leak, opposite};
  const auto found =
      compute_column_figures({sample_, data}, {sample_, generated}, {.replicas = 4}, team_);
  EXPECT_EQ(of(found, "column.shower.leak.wasserstein").value, 0.0);
  EXPECT_GT(*of(found, "column.other.wasserstein").value, 10.0);
  // Those with the energy differ for one of two columns, and that of the columns by 2.
  const double followed = 2.0 * 0.94;
  EXPECT_NEAR(*of(found, "column_correlations").value, std::sqrt((followed * followed + 4.0) / 3.0),
              0.1);
}

// A draw may leave out the only number that differs.
TEST_F(ColumnFiguresTest, ColumnThatHardlyVariesHasDistancesOfItsUnit) {
  SampledColumn data{"n", std::vector<double>(kEvents, 0.1)};
  data.numbers.front() = 3.0;
  const auto found = figures(data, data);
  EXPECT_LT(of(found, "column.n.wasserstein").floor, 10.0);
  const SampledColumn large{"n", std::vector<double>(kEvents, 1e17)};
  EXPECT_EQ(of(figures(large, large), "column.n.separation").value, 0.0);
}

TEST_F(ColumnFiguresTest, ColumnWithANumberThatIsNoneHasNoFigures) {
  SampledColumn broken = column(2, 1.0, 0.0);
  broken.numbers[7] = std::numeric_limits<double>::infinity();
  for (const Figure& figure : figures(column(1, 1.0, 0.0), broken)) {
    EXPECT_FALSE(figure.value) << figure.name;
  }
}

TEST_F(ColumnFiguresTest, ColumnOfOneNumberComparesToo) {
  const SampledColumn same{"n", std::vector<double>(kEvents, -2.0)};
  const SampledColumn other{"n", std::vector<double>(kEvents, 3.0)};
  EXPECT_EQ(of(figures(same, same), "column.n.wasserstein").value, 0.0);
  EXPECT_EQ(of(figures(same, other), "column.n.wasserstein").value, 5.0);
  EXPECT_EQ(of(figures(same, other), "column.n.separation").value, 1.0);
  EXPECT_FALSE(of(figures(same, other), "column_correlations").value) << "none varies";
}

}  // namespace
}  // namespace troupe::model
