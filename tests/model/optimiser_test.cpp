#include "model/optimiser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "runtime/base/random.h"

namespace troupe::model {
namespace {

// Four gradients of three weights, and the weights they start from.
const std::vector<std::vector<float>> kGradients{
    {0.5f, -2.0f, 1e-3f}, {0.25f, 1.0f, -2e-3f}, {-1.0f, 0.5f, 3e-3f}, {0.125f, -0.25f, 0.0f}};
const std::vector<float> kStart{1.0f, -0.5f, 0.25f};

struct Trained {
  std::vector<float> weights;
  std::vector<float> arrays;
  OptimiserCounters counters;
};

Trained train(const OptimiserOptions& options, double rate,
              const std::vector<std::vector<float>>& gradients, const std::vector<float>& start) {
  Trained run{start, {}, {}};
  run.arrays.assign(start.size() * static_cast<std::size_t>(optimiser_arrays(options)), 0.0f);
  for (const auto& gradient : gradients) {
    begin_update(options, run.counters);
    update(options, run.counters, rate, gradient, run.weights, run.arrays.data(),
           static_cast<std::int64_t>(start.size()));
  }
  return run;
}

// Computed in float64 by PyTorch 1.13 (torch.optim) where its formula is Keras', and by the
// formula of optimiser.h in NumPy float64 for Adam, whose epsilon PyTorch places elsewhere.
void expect_weights(const OptimiserOptions& options, double rate,
                    const std::vector<double>& expected) {
  const Trained run = train(options, rate, kGradients, kStart);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(run.weights[i], expected[i], 4e-7) << "weight " << i;
  }
}

TEST(Optimiser, SgdMatchesPyTorch) {
  expect_weights({.kind = OptimiserKind::kSgd}, 0.1, {1.0125, -0.425, 0.2498});
}

TEST(Optimiser, SgdWithMomentumMatchesPyTorch) {
  expect_weights({.kind = OptimiserKind::kSgd, .momentum = 0.9}, 0.1,
                 {0.9378000000000001, -0.15319999999999995, 0.2496281});
}

TEST(Optimiser, RmspropMatchesPyTorch) {
  expect_weights({.kind = OptimiserKind::kRmsprop}, 0.01,
                 {0.9781303874277082, -0.4867215917468027, 0.22105041669457376});
}

TEST(Optimiser, RmspropWithMomentumMatchesPyTorch) {
  expect_weights({.kind = OptimiserKind::kRmsprop, .momentum = 0.5}, 0.01,
                 {0.9534952277433046, -0.47388299305999154, 0.2018626695111956});
}

TEST(Optimiser, AdamMatchesKeras) {
  expect_weights({.kind = OptimiserKind::kAdam}, 0.01,
                 {0.9837914782896885, -0.4855917089831993, 0.23744862982589693});
}

TEST(Optimiser, AdadeltaMatchesPyTorch) {
  expect_weights({.kind = OptimiserKind::kAdadelta, .rho = 0.95}, 0.5,
                 {0.99963434349246, -0.4998695171455553, 0.24943836513506804});
}

// The papers' formulas in double, for one tensor.
struct InDouble {
  OptimiserOptions options;
  std::vector<double> weights, first, second;
  int updates = 0;

  static double norm(const std::vector<double>& values) {
    double sum = 0.0;
    for (const double value : values) sum += value * value;
    return std::sqrt(sum);
  }
  double ratio(double above, double below) const {
    return above > 0.0 && below > 0.0 ? above / below : 1.0;
  }
  void update(double rate, const std::vector<float>& gradient) {
    ++updates;
    std::vector<double> steps(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double g = gradient[i];
      if (options.kind == OptimiserKind::kLars) {
        steps[i] = g + options.decay * weights[i];
        continue;
      }
      first[i] = options.beta_1 * first[i] + (1.0 - options.beta_1) * g;
      second[i] = options.beta_2 * second[i] + (1.0 - options.beta_2) * g * g;
      const double mean = first[i] / (1.0 - std::pow(options.beta_1, updates));
      const double square = second[i] / (1.0 - std::pow(options.beta_2, updates));
      steps[i] = mean / (std::sqrt(square) + options.epsilon) + options.decay * weights[i];
    }
    const std::vector<double> g(gradient.begin(), gradient.end());
    const bool lars = options.kind == OptimiserKind::kLars;
    const double below =
        lars ? norm(g) + (norm(g) > 0.0 ? options.decay * norm(weights) : 0.0) : norm(steps);
    double scale = rate * ratio((lars ? options.trust : 1.0) * norm(weights), below);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (lars) {
        first[i] = options.momentum * first[i] + scale * steps[i];
        weights[i] -= first[i];
      } else {
        weights[i] -= scale * steps[i];
      }
    }
  }
};

void expect_formula(const OptimiserOptions& options, double rate, const std::vector<float>& start) {
  InDouble expected{options, {start.begin(), start.end()}, {}, {}};
  expected.first.assign(start.size(), 0.0);
  expected.second.assign(start.size(), 0.0);
  for (const auto& gradient : kGradients) expected.update(rate, gradient);
  const Trained run = train(options, rate, kGradients, start);
  for (std::size_t i = 0; i < start.size(); ++i) {
    EXPECT_NEAR(run.weights[i], expected.weights[i], 4e-7) << "weight " << i;
  }
}

TEST(Optimiser, LarsIsThePapersFormula) {
  expect_formula({.kind = OptimiserKind::kLars, .trust = 0.01}, 0.5, kStart);
  expect_formula({.kind = OptimiserKind::kLars, .momentum = 0.9, .trust = 0.01, .decay = 0.1}, 0.5,
                 kStart);
  expect_formula({.kind = OptimiserKind::kLars, .momentum = 0.9}, 1e-3, {0.0f, 0.0f, 0.0f});
}

TEST(Optimiser, LambIsThePapersFormula) {
  expect_formula({.kind = OptimiserKind::kLamb}, 0.01, kStart);
  expect_formula({.kind = OptimiserKind::kLamb, .decay = 0.1}, 0.01, kStart);
  expect_formula({.kind = OptimiserKind::kLamb}, 1e-3, {0.0f, 0.0f, 0.0f});
}

// A tensor of zero gradients, such as one that nothing depends on, stays as it is.
TEST(Optimiser, TensorsWithoutGradientsStay) {
  const std::vector<std::vector<float>> none(3, {0.0f, 0.0f, 0.0f});
  for (const OptimiserKind kind : {OptimiserKind::kLars, OptimiserKind::kLamb}) {
    EXPECT_EQ(train({.kind = kind}, 0.1, none, kStart).weights, kStart);
  }
}

TEST(Optimiser, FirstStepsAreTheirClosedForms) {
  const std::vector<std::vector<float>> gradient{{0.01f}};
  // v = 0.1 g^2, so the step is lr / sqrt(0.1), up to epsilon.
  const Trained rmsprop = train({.kind = OptimiserKind::kRmsprop}, 1e-3, gradient, {0.0f});
  EXPECT_NEAR(rmsprop.weights[0], -1e-3 * 0.01 / (std::sqrt(0.1) * 0.01 + 1e-7), 1e-9);
  // m / sqrt(v) corrected is the sign of g.
  const Trained adam = train({.kind = OptimiserKind::kAdam}, 1e-3, gradient, {0.0f});
  EXPECT_NEAR(adam.weights[0], -1e-3, 1e-6);
  // sqrt(eps) / sqrt(0.05 g^2 + eps) g.
  const Trained adadelta =
      train({.kind = OptimiserKind::kAdadelta, .rho = 0.95}, 1.0, gradient, {0.0f});
  EXPECT_NEAR(adadelta.weights[0], -0.01 * std::sqrt(1e-7 / (0.05 * 1e-4 + 1e-7)), 1e-9);
}

TEST(Optimiser, EpsilonStandsOutsideTheRootOfRmsprop) {
  // Inside it would make this step 1e-3 x 1e-6 / sqrt(1e-13 + 1e-7), a hundredth of it.
  const Trained run = train({.kind = OptimiserKind::kRmsprop}, 1e-3, {{1e-6f}}, {0.0f});
  EXPECT_NEAR(run.weights[0], -1e-3 * 1e-6 / (std::sqrt(1e-13) + 1e-7), 1e-8);
}

TEST(Optimiser, CountsStepsAndMultipliesBetaPowers) {
  OptimiserCounters counters;
  const OptimiserOptions adam{.kind = OptimiserKind::kAdam};
  for (int i = 0; i < 3; ++i) begin_update(adam, counters);
  EXPECT_EQ(counters.updates, 3u);
  EXPECT_EQ(counters.beta_1_power, 0.9 * 0.9 * 0.9);
  EXPECT_EQ(counters.beta_2_power, 0.999 * 0.999 * 0.999);
  OptimiserCounters lamb;
  begin_update({.kind = OptimiserKind::kLamb}, lamb);
  EXPECT_EQ(lamb, (OptimiserCounters{1, 0.9, 0.999}));
  OptimiserCounters plain;
  begin_update({.kind = OptimiserKind::kRmsprop}, plain);
  EXPECT_EQ(plain, (OptimiserCounters{1, 1.0, 1.0}));
}

TEST(Optimiser, NamesItsArrays) {
  const auto names = [](const OptimiserOptions& options) {
    std::vector<std::string> result;
    for (int i = 0; i < optimiser_arrays(options); ++i) {
      result.push_back(optimiser_array_name(options, i));
    }
    return result;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({.kind = OptimiserKind::kSgd}), Names{});
  EXPECT_EQ(names({.kind = OptimiserKind::kSgd, .momentum = 0.1}), Names{"velocity"});
  EXPECT_EQ(names({.kind = OptimiserKind::kLars, .momentum = 0.9}), Names{"velocity"});
  EXPECT_EQ(names({.kind = OptimiserKind::kLamb}), (Names{"mean", "mean_square"}));
  EXPECT_EQ(names({.kind = OptimiserKind::kRmsprop}), Names{"mean_square"});
  EXPECT_EQ(names({.kind = OptimiserKind::kRmsprop, .momentum = 0.1}),
            (Names{"mean_square", "velocity"}));
  EXPECT_EQ(names({.kind = OptimiserKind::kAdam}), (Names{"mean", "mean_square"}));
  EXPECT_EQ(names({.kind = OptimiserKind::kAdadelta}),
            (Names{"mean_square", "mean_square_update"}));
}

// Vector body and scalar tail, whole network and single tensors: the same bits.
TEST(Optimiser, PiecesOfARangeGiveTheBitsOfTheWhole) {
  constexpr std::size_t kSize = 1003;
  std::vector<float> gradient(kSize), start(kSize);
  runtime::fill_normal({.seed = 1, .stream = 1}, gradient.data(), kSize);
  runtime::fill_normal({.seed = 1, .stream = 2}, start.data(), kSize);
  for (const OptimiserKind kind : {OptimiserKind::kSgd, OptimiserKind::kRmsprop,
                                   OptimiserKind::kAdam, OptimiserKind::kAdadelta}) {
    for (const double momentum : {0.0, 0.9}) {
      const OptimiserOptions options{.kind = kind, .momentum = momentum};
      const Trained whole = train(options, 1e-3, {gradient, gradient, gradient}, start);
      Trained pieces{start, std::vector<float>(whole.arrays.size(), 0.0f), {}};
      for (int step = 0; step < 3; ++step) {
        begin_update(options, pieces.counters);
        for (std::size_t begin = 0, size = 1; begin < kSize; begin += size, size = size % 7 + 1) {
          size = std::min(size, kSize - begin);
          update(options, pieces.counters, 1e-3, std::span(gradient).subspan(begin, size),
                 std::span(pieces.weights).subspan(begin, size),
                 pieces.arrays.empty() ? nullptr : pieces.arrays.data() + begin, kSize);
        }
      }
      EXPECT_EQ(pieces.weights, whole.weights);
      EXPECT_EQ(pieces.arrays, whole.arrays);
    }
  }
}

}  // namespace
}  // namespace troupe::model
