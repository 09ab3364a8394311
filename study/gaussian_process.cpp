#include "study/gaussian_process.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include <Eigen/Cholesky>
#include <Eigen/Core>

#include "runtime/base/error.h"
#include "runtime/base/math.h"
#include "study/descent.h"

namespace troupe::study {
namespace {

namespace math = runtime::math;
using Eigen::MatrixXd;
using Eigen::VectorXd;

Eigen::Index index(std::size_t count) { return static_cast<Eigen::Index>(count); }

// The kernel of variance 1.
double correlation(const std::vector<bool>& is_word, const std::vector<double>& lengths,
                   const Coordinates& a, const Coordinates& b) {
  double squares = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double between = is_word[i] ? (a[i] == b[i] ? 0.0 : 1.0) : a[i] - b[i];
    squares += between * between / (lengths[i] * lengths[i]);
  }
  const double r = std::sqrt(5.0 * squares);
  return (1.0 + r + r * r / 3.0) * math::exp(-r);
}

// With `noise`, relative to the signal, on the diagonal.
MatrixXd correlations(const std::vector<bool>& is_word, const std::vector<Coordinates>& places,
                      const std::vector<double>& lengths, double noise) {
  MatrixXd all(index(places.size()), index(places.size()));
  for (std::size_t i = 0; i < places.size(); ++i) {
    all(index(i), index(i)) = 1.0 + noise;
    for (std::size_t j = 0; j < i; ++j) {
      const double value = correlation(is_word, lengths, places[i], places[j]);
      all(index(i), index(j)) = value;
      all(index(j), index(i)) = value;
    }
  }
  return all;
}

double log_determinant(const Eigen::LLT<MatrixXd>& solver) {
  double sum = 0.0;
  const auto& triangle = solver.matrixLLT();
  for (Eigen::Index i = 0; i < triangle.rows(); ++i) sum += 2.0 * math::log(triangle(i, i));
  return sum;
}

VectorXd vector_of(const std::vector<double>& values) {
  return Eigen::Map<const VectorXd>(values.data(), index(values.size()));
}

// The densities of a length and of the noise before anything is known: their logarithms are normal.
// Lengths grow with the root of the number of dimensions, as distances do. They are shorter than in
// the paper: with its mean of sqrt(2) few trials of Hartmann's function look like a plane with
// noise, and the search stays where it is (docs/benchmarks.md has the figures).
double length_prior(double log_length, std::size_t dimensions) {
  const double mean = -1.25 + 0.5 * math::log(static_cast<double>(dimensions));
  return -(log_length - mean) * (log_length - mean) / (2.0 * 1.0);
}
double noise_prior(double log_noise) {
  return -(log_noise + 6.0) * (log_noise + 6.0) / (2.0 * 4.0);
}

constexpr double kLeastLogLength = -4.0, kMostLogLength = 4.0;
constexpr double kLeastLogNoise = -14.0, kMostLogNoise = 1.0;
constexpr double kLeastSignal = 1e-12;  // of values that are all the same

// The plausibility of logarithms of lengths and, last, of the noise relative to the signal, which
// itself follows from them: its most likely value is known.
class Plausibility {
 public:
  Plausibility(const std::vector<bool>& is_word, const std::vector<Coordinates>& places,
               const std::vector<double>& values)
      : is_word_(is_word), places_(places), values_(vector_of(values)) {}

  double operator()(const std::vector<double>& logs) const {
    double prior = 0.0;
    std::vector<double> lengths;
    for (std::size_t i = 0; i + 1 < logs.size(); ++i) {
      if (logs[i] < kLeastLogLength || logs[i] > kMostLogLength) return kImpossible;
      lengths.push_back(math::exp(logs[i]));
      prior += length_prior(logs[i], logs.size() - 1);
    }
    if (logs.back() < kLeastLogNoise || logs.back() > kMostLogNoise) return kImpossible;
    prior += noise_prior(logs.back());
    const Eigen::LLT<MatrixXd> solver(
        correlations(is_word_, places_, lengths, math::exp(logs.back())));
    if (solver.info() != Eigen::Success) return kImpossible;
    const double count = static_cast<double>(places_.size());
    return prior - 0.5 * (count * math::log(signal(solver)) + log_determinant(solver));
  }

  KernelOptions options(const std::vector<double>& logs) const {
    KernelOptions options;
    for (std::size_t i = 0; i + 1 < logs.size(); ++i) options.lengths.push_back(math::exp(logs[i]));
    const double noise = math::exp(logs.back());
    const Eigen::LLT<MatrixXd> solver(correlations(is_word_, places_, options.lengths, noise));
    options.signal = signal(solver);
    options.noise = noise * options.signal;
    return options;
  }

 private:
  static constexpr double kImpossible = -std::numeric_limits<double>::infinity();

  double signal(const Eigen::LLT<MatrixXd>& solver) const {
    const double square = values_.dot(solver.solve(values_));
    return std::max(square / static_cast<double>(places_.size()), kLeastSignal);
  }

  const std::vector<bool>& is_word_;
  const std::vector<Coordinates>& places_;
  const VectorXd values_;
};

}  // namespace

struct GaussianProcess::Solved {
  std::vector<bool> is_word;
  std::vector<Coordinates> places;
  KernelOptions options;
  VectorXd values;
  Eigen::LLT<MatrixXd> solver;  // of the covariances divided by the signal
  VectorXd weights;             // what the solver makes of the values
};

GaussianProcess::GaussianProcess(std::vector<bool> is_word, std::vector<Coordinates> places,
                                 const std::vector<double>& values, KernelOptions options) {
  CHECK(places.size() == values.size() && options.lengths.size() == is_word.size());
  auto solved = std::make_unique<Solved>();
  solved->is_word = std::move(is_word);
  solved->places = std::move(places);
  solved->options = std::move(options);
  solved->values = vector_of(values);
  const double noise = solved->options.noise / solved->options.signal;
  solved->solver.compute(
      correlations(solved->is_word, solved->places, solved->options.lengths, noise));
  CHECK(solved->solver.info() == Eigen::Success, "covariances without noise");
  solved->weights = solved->solver.solve(solved->values);
  solved_ = std::move(solved);
}

GaussianProcess::~GaussianProcess() = default;
GaussianProcess::GaussianProcess(GaussianProcess&&) noexcept = default;
GaussianProcess& GaussianProcess::operator=(GaussianProcess&&) noexcept = default;

const KernelOptions& GaussianProcess::options() const { return solved_->options; }

// Equations 2.25 and 2.26.
Posterior GaussianProcess::at(const Coordinates& place) const {
  const Solved& own = *solved_;
  VectorXd towards(index(own.places.size()));
  for (std::size_t i = 0; i < own.places.size(); ++i) {
    towards(index(i)) = correlation(own.is_word, own.options.lengths, own.places[i], place);
  }
  const double mean = towards.dot(own.weights);
  own.solver.matrixL().solveInPlace(towards);
  const double left = std::max(0.0, 1.0 - towards.squaredNorm());
  return {mean, std::sqrt(left * own.options.signal)};
}

double GaussianProcess::log_likelihood() const {
  const Solved& own = *solved_;
  const double count = static_cast<double>(own.places.size());
  return -0.5 *
         (own.values.dot(own.weights) / own.options.signal + count * math::log(own.options.signal) +
          log_determinant(own.solver) + count * math::log(2.0 * std::numbers::pi));
}

KernelOptions fit_kernel(const std::vector<bool>& is_word, const std::vector<Coordinates>& places,
                         const std::vector<double>& values) {
  const Plausibility plausibility(is_word, places, values);
  DescentOptions options;
  options.first_step = 1.0;
  options.last_step = 0.05;
  options.most_calls = 60 * (is_word.size() + 1);
  Descent best;
  best.value = std::numeric_limits<double>::infinity();
  for (const auto& [log_length, log_noise] :
       {std::pair(-1.0, -6.0), std::pair(0.5, -4.0), std::pair(1.5, -9.0)}) {
    std::vector<double> from(is_word.size(), log_length);
    from.push_back(log_noise);
    Descent found = descend(from, options,
                            [&](const std::vector<double>& logs) { return -plausibility(logs); });
    if (found.value < best.value) best = std::move(found);
  }
  return plausibility.options(best.at);
}

}  // namespace troupe::study
