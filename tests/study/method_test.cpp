#include "study/method.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "runtime/base/random.h"
#include "tests/study/study_support.h"

namespace troupe::study {
namespace {

double best_of(const std::vector<double>& costs) { return *std::ranges::min_element(costs); }

// Costs of points of the mixed space: best at rate 0.01, share 0.5, 16 and rmsprop.
double mixed_cost(const Point& point) {
  const double rate = std::log10(point[0]) + 2.0, share = point[1] - 0.5;
  return rate * rate + share * share + (point[2] == 16.0 ? 0.0 : 1.0) +
         (point[3] == 1.0 ? 0.0 : 1.5);
}

Known known_of(const Space& space, std::uint32_t count) {
  Known known;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Point point = random_point(space, 11, i);
    known.ended.push_back({point, mixed_cost(point)});
  }
  return known;
}

void expect_within(const Space& space, const Point& point) {
  EXPECT_EQ(point_of(space, settings_of(space, point)), point);
}

class AnyMethod : public testing::TestWithParam<MethodKind> {};

TEST_P(AnyMethod, ProposesThePointsOfTheSpaceThatItsArgumentsGive) {
  const Study study = study_of(mixed_space(), GetParam(), 40);
  Study other = study;
  other.method.seed = 2;
  const auto method = make_method(study), again = make_method(study), of_seed = make_method(other);
  Known known = known_of(study.space, 15);
  known.ended[3].cost.reset();
  known.pending = {random_point(study.space, 12, 0), random_point(study.space, 12, 1)};
  std::size_t different = 0;
  for (std::uint32_t trial = 0; trial < 20; ++trial) {
    const Point point = method->propose(trial, known);
    expect_within(study.space, point);
    EXPECT_EQ(again->propose(trial, known), point);
    different += of_seed->propose(trial, known) != point;
  }
  EXPECT_EQ(different > 15, GetParam() != MethodKind::kGrid);
}

TEST_P(AnyMethod, ProposesSettledPointsOfASpaceWithFieldsThatHangOnOthers) {
  const Study study = study_of(hanging_space(), GetParam(), 60);
  const auto method = make_method(study);
  Known known;
  std::set<Point> seen;
  std::size_t betas = 0;
  for (std::uint32_t trial = 0; trial < std::min(60u, method->trials()); ++trial) {
    const Point point = method->propose(trial, known);
    expect_within(study.space, point);
    const bool has_beta = point[2] != kAbsent;
    // Best with the one that has a beta.
    known.ended.push_back({point, has_beta ? std::abs(point[2] - 0.3) : 1.0 + point[1]});
    betas += has_beta;
    seen.insert(point);
  }
  EXPECT_GT(betas, 0u);
  EXPECT_LT(betas, known.ended.size());
  if (GetParam() == MethodKind::kBayesian || GetParam() == MethodKind::kGenetic) {
    EXPECT_GT(betas, 30u);
  }
  if (GetParam() == MethodKind::kGrid) {
    // Three rates; with them three betas, or no nesterov or three delays with either of two.
    EXPECT_EQ(method->trials(), 3u * (3 + 2 * (1 + 3)));
    EXPECT_EQ(seen.size(), method->trials());
  }
}

TEST_P(AnyMethod, GoesOnWhereEveryTrialHasFailed) {
  const Study study = study_of(mixed_space(), GetParam(), 40);
  const auto method = make_method(study);
  Known known = known_of(study.space, 15);
  for (Observation& each : known.ended) each.cost.reset();
  expect_within(study.space, method->propose(15, known));
  known.ended[2].cost = 1.0;
  expect_within(study.space, method->propose(16, known));
  expect_within(study.space, method->propose(17, {}));
}

INSTANTIATE_TEST_SUITE_P(Kinds, AnyMethod,
                         testing::Values(MethodKind::kGrid, MethodKind::kRandom,
                                         MethodKind::kGenetic, MethodKind::kBayesian));

TEST(GridMethod, HasEveryPointOfTheGridOnce) {
  Study study = study_of(mixed_space(), MethodKind::kGrid, 1);
  study.method.levels = 4;
  const auto method = make_method(study);
  ASSERT_EQ(method->trials(), 4u * 4 * 3 * 3);
  std::set<Point> seen;
  for (std::uint32_t i = 0; i < method->trials(); ++i) seen.insert(method->propose(i, {}));
  EXPECT_EQ(seen.size(), method->trials());
  EXPECT_EQ(*seen.begin(), (Point{1e-4, -1.0, 8.0, 0.0}));
  EXPECT_EQ(*seen.rbegin(), (Point{1e-1, 2.0, 24.0, 2.0}));
  EXPECT_EQ(method->propose(1, {}), (Point{1e-4, -1.0, 8.0, 1.0}));
}

TEST(RandomMethod, DrawsEveryPartOfTheSpace) {
  const Study study = study_of(mixed_space(), MethodKind::kRandom, 1000);
  const auto method = make_method(study);
  std::vector<int> counts(4 * 4);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const Point point = method->propose(i, {});
    for (std::size_t d = 0; d < 2; ++d) {
      ++counts[d * 4 + std::min(3, static_cast<int>(4.0 * share_of(study.space[d], point[d])))];
    }
    ++counts[8 + static_cast<std::size_t>(point[2]) / 8 - 1];
    ++counts[12 + static_cast<std::size_t>(point[3])];
  }
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(counts[i], 250, 60) << i;
  for (const std::size_t i : {8, 9, 10, 12, 13, 14}) EXPECT_NEAR(counts[i], 333, 60) << i;
}

TEST(BayesianMethod, SpreadsItsFirstTrialsOverStrataOfEachDimension) {
  Study study = study_of({linear("a", 0.0, 1.0), linear("b", 0.0, 1.0)}, MethodKind::kBayesian, 20);
  study.method.first = 12;
  const auto method = make_method(study);
  std::vector<std::set<int>> strata(2);
  for (std::uint32_t i = 0; i < 12; ++i) {
    EXPECT_FALSE(method->learns_for(i));
    const Point point = method->propose(i, {});
    for (std::size_t d = 0; d < 2; ++d) strata[d].insert(static_cast<int>(point[d] * 12.0));
  }
  EXPECT_EQ(strata[0].size(), 12u);
  EXPECT_EQ(strata[1].size(), 12u);
  EXPECT_TRUE(method->learns_for(12));
}

// A third of the way between what the best random search and the function's minimum give.
TEST(BayesianMethod, FindsTheMinimumOfBraninWhereRandomSearchDoesNot) {
  double bayesian = 0.0, random = 0.0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    for (const MethodKind kind : {MethodKind::kBayesian, MethodKind::kRandom}) {
      Study study = study_of(branin_space(), kind, 30);
      study.method.seed = seed;
      const auto costs = costs_of(*make_method(study),
                                  [](const Point& point) { return branin(point[0], point[1]); });
      (kind == MethodKind::kRandom ? random : bayesian) += best_of(costs) / 3.0;
    }
  }
  EXPECT_LT(bayesian, 0.45);
  EXPECT_GT(random, 0.6);
}

TEST(BayesianMethod, FindsTheBestOfAMixedSpace) {
  const Study study = study_of(mixed_space(), MethodKind::kBayesian, 35);
  EXPECT_LT(best_of(costs_of(*make_method(study), mixed_cost)), 0.02);
}

TEST(BayesianMethod, LeavesWhatIsPendingAlone) {
  const Study study = study_of(branin_space(), MethodKind::kBayesian, 30);
  const auto method = make_method(study);
  Known known;
  for (std::uint32_t i = 0; i < 12; ++i) {
    const Point point = random_point(study.space, 3, i);
    known.ended.push_back({point, branin(point[0], point[1])});
  }
  const Point first = method->propose(12, known);
  known.pending = {first};
  const Point second = method->propose(12, known);
  const double apart = std::hypot((first[0] - second[0]) / 15.0, (first[1] - second[1]) / 15.0);
  EXPECT_GT(apart, 0.05);
}

TEST(BayesianMethod, ProposesNoPointTwiceAsLongAsThereAreOthers) {
  const Space space{whole("a", 1, 4), words("b", {"x", "y", "z"})};
  const Study study = study_of(space, MethodKind::kBayesian, 12);
  std::set<Point> seen;
  const auto method = make_method(study);
  Known known;
  Point point{1.0, 0.0};
  for (std::uint32_t i = 0; i < 12; ++i) {
    known.ended.push_back({point, point[0] + point[1]});
    seen.insert(point);
    point = method->propose(20, known);
  }
  EXPECT_EQ(seen.size(), 12u);
}

// The sound trials are equal and lie close to each other, so that there is more to learn among the
// failed ones.
TEST(BayesianMethod, KeepsAwayFromFailuresWhereOtherTrialsAreEqual) {
  const Study study = study_of({linear("a", 0.0, 1.0)}, MethodKind::kBayesian, 30);
  Known known;
  for (int i = 0; i <= 10; ++i) known.ended.push_back({{0.05 * i}, 1.0});
  for (const double a : {0.6, 0.7, 0.85, 1.0}) known.ended.push_back({{a}, std::nullopt});
  EXPECT_LT(make_method(study)->propose(15, known)[0], 0.6);
}

TEST(GeneticMethod, DrawsAChildAgainThatWasProposedBefore) {
  const Space space{whole("a", 1, 4), words("b", {"x", "y", "z"})};
  Study study = study_of(space, MethodKind::kGenetic, 30);
  study.method.population = 2;
  const auto method = make_method(study);
  Known known;
  known.ended = {{{1.0, 0.0}, 1.0}, {{2.0, 0.0}, 2.0}};
  for (std::uint32_t trial = 2; trial < 9; ++trial) {
    const Point point = method->propose(trial, known);
    EXPECT_FALSE(known.has(point)) << trial;
    if (trial % 2 == 0) known.pending.push_back(point);
    if (trial % 2 == 1) known.ended.push_back({point, point[0] + point[1] + 5.0});
  }
}

TEST(GeneticMethod, DescendsFromTheBest) {
  Study study = study_of(mixed_space(), MethodKind::kGenetic, 100);
  const auto costs = costs_of(*make_method(study), mixed_cost);
  const auto mean = [&](std::size_t from) {
    return std::accumulate(costs.begin() + static_cast<std::ptrdiff_t>(from),
                           costs.begin() + static_cast<std::ptrdiff_t>(from) + 20, 0.0) /
           20.0;
  };
  EXPECT_LT(mean(80), 0.5 * mean(0));
  EXPECT_LT(best_of(costs), 0.1);
}

TEST(GeneticMethod, WithoutCrossoverAndMutationRepeatsAParent) {
  Study study = study_of(mixed_space(), MethodKind::kGenetic, 100);
  study.method.crossover = 0.0;
  study.method.mutation = 0.0;
  const auto method = make_method(study);
  const Known known = known_of(study.space, 30);
  for (std::uint32_t trial = 30; trial < 50; ++trial) {
    const Point child = method->propose(trial, known);
    EXPECT_NE(std::ranges::find(known.ended, child, &Observation::point), known.ended.end());
  }
}

}  // namespace
}  // namespace troupe::study
