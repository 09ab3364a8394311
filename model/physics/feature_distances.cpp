#include "model/physics/feature_distances.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <Eigen/Dense>

#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace troupe::model {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using FloatRows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int kSubsetSizes = 10;
constexpr Eigen::Index kNeighboursAtOnce = 256, kTargetsAtOnce = 4096;

Eigen::Index index(std::size_t count) { return static_cast<Eigen::Index>(count); }

Eigen::Map<const Rows> rows(const FeatureTable& table) {
  return {table.values.data(), index(table.count()), index(table.size)};
}

VectorXd vector_of(Times times) {
  VectorXd found(index(times.size()));
  for (std::size_t i = 0; i < times.size(); ++i) found[index(i)] = times[i];
  return found;
}

struct Gaussian {
  VectorXd mean;
  MatrixXd covariance;
};

Gaussian gaussian(const FeatureTable& table, const VectorXd& times) {
  const double count = times.sum();
  Gaussian found;
  found.mean = rows(table).transpose() * times / count;
  const Rows centred = rows(table).rowwise() - found.mean.transpose();
  found.covariance = centred.transpose() * times.asDiagonal() * centred / (count - 1.0);
  return found;
}

// Of a symmetric matrix without negative eigenvalues but for rounding.
MatrixXd root(const MatrixXd& matrix) {
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solved(matrix);
  const VectorXd roots = solved.eigenvalues().cwiseMax(0.0).cwiseSqrt();
  return solved.eigenvectors() * roots.asDiagonal() * solved.eigenvectors().transpose();
}

double distance(const Gaussian& a, const Gaussian& b) {
  // The roots of the eigenvalues of C_a C_b are those of C_a^(1/2) C_b C_a^(1/2), which is
  // symmetric.
  const MatrixXd half = root(a.covariance);
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solved(half * b.covariance * half,
                                                       Eigen::EigenvaluesOnly);
  const double overlap = solved.eigenvalues().cwiseMax(0.0).cwiseSqrt().sum();
  // Fewer vectors than features leave eigenvalues of nought, whose rounding the root makes larger.
  return std::max(0.0, (a.mean - b.mean).squaredNorm() + a.covariance.trace() +
                           b.covariance.trace() - 2.0 * overlap);
}

// 1 for `chosen` of `count` vectors, 0 for the others: Floyd's draw without replacement.
VectorXd subset(std::size_t count, std::size_t chosen, const runtime::RandomPosition& position) {
  VectorXd times = VectorXd::Zero(index(count));
  for (std::size_t j = count - chosen; j < count; ++j) {
    const double u = runtime::random_uniform(position, static_cast<std::uint32_t>(j));
    const auto drawn = std::min(static_cast<std::size_t>(u * static_cast<double>(j + 1)), j);
    times[index(times[index(drawn)] == 0.0 ? drawn : j)] = 1.0;
  }
  return times;
}

std::vector<double> kernel(const FeatureTable& a, const FeatureTable& b) {
  std::vector<double> found(a.count() * b.count());
  Eigen::Map<Rows> matrix(found.data(), index(a.count()), index(b.count()));
  matrix.noalias() = rows(a) * rows(b).transpose() / static_cast<double>(a.size);
  matrix = (matrix.array() + 1.0).square().square().matrix();
  return found;
}

// sum_ij x_i K_ij y_j, without i = j where `without_diagonal`.
double quadratic(const std::vector<double>& matrix, const VectorXd& x, const VectorXd& y,
                 bool without_diagonal) {
  const Eigen::Map<const Rows> k(matrix.data(), x.size(), y.size());
  double sum = x.dot(k * y);
  if (without_diagonal) sum -= (x.array() * k.diagonal().array() * y.array()).sum();
  return sum;
}

}  // namespace

void scale_by_data(FeatureTable& data, FeatureTable& generated) {
  CHECK(data.size == generated.size, "vectors of different sizes do not compare");
  for (std::size_t feature = 0; feature < data.size; ++feature) {
    double largest = 0.0;
    for (std::size_t i = feature; i < data.values.size(); i += data.size) {
      largest = std::max(largest, std::abs(data.values[i]));
    }
    if (largest == 0.0) continue;
    for (FeatureTable* table : {&data, &generated}) {
      for (std::size_t i = feature; i < table->values.size(); i += data.size) {
        table->values[i] /= largest;
      }
    }
  }
}

double frechet_distance(const FeatureTable& a, Times times_a, const FeatureTable& b,
                        Times times_b) {
  CHECK(a.size == b.size && a.count() == times_a.size() && b.count() == times_b.size(),
        "vectors of different sizes do not compare");
  const VectorXd of_a = vector_of(times_a), of_b = vector_of(times_b);
  if (of_a.sum() < 2.0 || of_b.sum() < 2.0) return 0.0;
  return distance(gaussian(a, of_a), gaussian(b, of_b));
}

double frechet_intercept(const FeatureTable& a, const FeatureTable& b, std::uint64_t seed,
                         int repeats) {
  const std::size_t most = std::min(a.count(), b.count()),
                    least = std::max<std::size_t>(most / 4, 2);
  if (most < 3) return 0.0;
  double sum_x = 0.0, sum_y = 0.0, sum_xx = 0.0, sum_xy = 0.0;
  for (int i = 0; i < kSubsetSizes; ++i) {
    const double share = static_cast<double>(i) / (kSubsetSizes - 1);
    const double x = (1.0 - share) / static_cast<double>(least) + share / static_cast<double>(most);
    const auto size = static_cast<std::size_t>(std::llround(1.0 / x));
    double y = 0.0;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      const auto draw = static_cast<std::uint32_t>(i * repeats + repeat);
      y += distance(gaussian(a, subset(a.count(), size, {seed, draw, 0, 0, 0})),
                    gaussian(b, subset(b.count(), size, {seed, draw, 1, 0, 0})));
    }
    y /= repeats;
    const double place = 1.0 / static_cast<double>(size);
    sum_x += place;
    sum_y += y;
    sum_xx += place * place;
    sum_xy += place * y;
  }
  const double slope =
      (kSubsetSizes * sum_xy - sum_x * sum_y) / (kSubsetSizes * sum_xx - sum_x * sum_x);
  return (sum_y - slope * sum_x) / kSubsetSizes;
}

KernelDistance::KernelDistance(const FeatureTable& a, const FeatureTable& b)
    : count_a_(a.count()),
      count_b_(b.count()),
      aa_(kernel(a, a)),
      bb_(kernel(b, b)),
      ab_(kernel(a, b)) {}

// Draws of one vector stand for different vectors of which only one is known, so its pairs with
// itself are left out however often it was drawn.
double KernelDistance::distance(Times times_a, Times times_b, bool same) const {
  CHECK(times_a.size() == count_a_ && times_b.size() == count_b_,
        "every vector needs the number of times it counts");
  const VectorXd a = vector_of(times_a), b = vector_of(times_b);
  const double pairs_a = a.sum() * a.sum() - a.squaredNorm();
  const double pairs_b = b.sum() * b.sum() - b.squaredNorm();
  const double pairs_ab = a.sum() * b.sum() - (same ? a.dot(b) : 0.0);
  if (pairs_a <= 0.0 || pairs_b <= 0.0 || pairs_ab <= 0.0) return 0.0;
  return quadratic(aa_, a, a, true) / pairs_a + quadratic(bb_, b, b, true) / pairs_b -
         2.0 * quadratic(ab_, a, b, same) / pairs_ab;
}

std::vector<double> nearest_squares(std::span<const float> from, std::span<const float> to,
                                    std::size_t size, bool same) {
  CHECK(size > 0 && from.size() % size == 0 && to.size() % size == 0, "vectors of one size");
  const Eigen::Map<const FloatRows> all_from(from.data(), index(from.size() / size), index(size));
  const Eigen::Map<const FloatRows> all_to(to.data(), index(to.size() / size), index(size));
  std::vector<double> found(from.size() / size, std::numeric_limits<double>::infinity());
  // The nearest of a block is chosen by products, and its distance taken by differences: products
  // alone leave rounding where there is none.
  for (Eigen::Index begin = 0; begin < all_to.rows(); begin += kTargetsAtOnce) {
    const auto to_here = all_to.middleRows(begin, std::min(kTargetsAtOnce, all_to.rows() - begin));
    const Eigen::VectorXf squares = to_here.rowwise().squaredNorm();
    for (Eigen::Index first = 0; first < all_from.rows(); first += kNeighboursAtOnce) {
      const Eigen::Index count = std::min(kNeighboursAtOnce, all_from.rows() - first);
      FloatRows far = -2.0F * all_from.middleRows(first, count) * to_here.transpose();
      far.rowwise() += squares.transpose();
      for (Eigen::Index i = 0; i < count; ++i) {
        const Eigen::Index own = first + i - begin;
        if (same && own >= 0 && own < far.cols()) {
          far(i, own) = std::numeric_limits<float>::infinity();
        }
        Eigen::Index nearest = 0;
        if (!std::isfinite(far.row(i).minCoeff(&nearest))) continue;
        const auto difference = all_from.row(first + i) - to_here.row(nearest);
        double& least = found[static_cast<std::size_t>(first + i)];
        least = std::min(least, static_cast<double>(difference.squaredNorm()));
      }
    }
  }
  return found;
}

}  // namespace troupe::model
