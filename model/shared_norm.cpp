#include "model/shared_norm.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"

namespace troupe::model {
namespace {

// Array number `array` of those in `values`, from the offset on.
template <class T>
T* part_of(std::span<T> values, std::int64_t arrays, auto array, std::int64_t offset) {
  const auto size = std::ssize(values) / arrays;
  return values.data() + static_cast<std::int64_t>(array) * size + offset;
}

std::int64_t offset_of(const std::vector<ParameterTensor>& tensors, int layer, ParameterRole role) {
  const auto found = std::ranges::find_if(tensors, [&](const ParameterTensor& tensor) {
    return tensor.layer == layer && tensor.role == role;
  });
  CHECK(found != tensors.end(), "a batch norm has the parameter");
  return found->offset;
}

}  // namespace

std::vector<SharedNorm> shared_norms(const NetworkDescription& network, const NetworkShapes& shapes,
                                     const ParameterLayout& layout) {
  std::vector<SharedNorm> norms;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const auto* norm = std::get_if<BatchNorm>(&network.layers[i].kind);
    if (norm == nullptr || !norm->sync) continue;
    const int layer = static_cast<int>(i);
    norms.push_back({layer, shapes.layers[i].channels, shapes.layers[i].cells(), norm->epsilon,
                     offset_of(layout.moving, layer, ParameterRole::kMovingMean),
                     offset_of(layout.moving, layer, ParameterRole::kMovingVariance),
                     offset_of(layout.weights, layer, ParameterRole::kGamma),
                     offset_of(layout.weights, layer, ParameterRole::kBeta)});
  }
  return norms;
}

// With m micro-batches of n rows each, the variance of all rows is the mean of the micro-batches'
// variances and the variance of their means.
template <class T>
void take_statistics(const SharedNorm& norm, std::int64_t rows, std::uint32_t micro_batches,
                     std::span<const T> means, std::span<T> shared) {
  const auto given = [&](ShareArray array, std::int64_t offset) {
    return part_of(means, kShareArrays, array, offset);
  };
  const auto read = [&](SharedArray array, std::int64_t offset) {
    return part_of(shared, kSharedArrays, array, offset);
  };
  const double n = static_cast<double>(rows), all = n * micro_batches;
  for (std::int64_t c = 0; c < norm.channels; ++c) {
    const double mean = given(ShareArray::kStatistics, norm.mean)[c];
    const double within =
        given(ShareArray::kStatistics, norm.variance)[c] * std::max(n - 1.0, 1.0) / n;
    T& shift = read(SharedArray::kShifts, norm.mean)[c];
    const double left = mean + shift;
    const double between = given(ShareArray::kSquares, norm.mean)[c] - left * left;
    shift = static_cast<T>(-mean);
    const T variance = static_cast<T>(within + std::max(between, 0.0));
    read(SharedArray::kStatistics, norm.mean)[c] = static_cast<T>(mean);
    read(SharedArray::kStatistics, norm.variance)[c] = variance;
    read(SharedArray::kDeviations, norm.variance)[c] =
        static_cast<T>(1.0 / std::sqrt(static_cast<double>(variance) + norm.epsilon));
    read(SharedArray::kMoving, norm.mean)[c] = static_cast<T>(mean);
    read(SharedArray::kMoving, norm.variance)[c] =
        static_cast<T>(static_cast<double>(variance) * all / std::max(all - 1.0, 1.0));
  }
}

template <class T>
void take_slopes(const SharedNorm& norm, std::int64_t rows, std::span<const T> means,
                 std::span<T> shared) {
  for (const std::int64_t offset : {norm.mean, norm.variance}) {
    const T* const sums = part_of(means, kShareArrays, ShareArray::kSlopes, offset);
    T* const slopes = part_of(shared, kSharedArrays, SharedArray::kSlopes, offset);
    T* const gradients = part_of(shared, kSharedArrays, SharedArray::kGradients, offset);
    for (std::int64_t c = 0; c < norm.channels; ++c) {
      slopes[c] = static_cast<T>(-static_cast<double>(sums[c]) / static_cast<double>(rows));
      gradients[c] = sums[c];
    }
  }
}

template void take_statistics(const SharedNorm&, std::int64_t, std::uint32_t,
                              std::span<const float>, std::span<float>);
template void take_statistics(const SharedNorm&, std::int64_t, std::uint32_t,
                              std::span<const double>, std::span<double>);
template void take_slopes(const SharedNorm&, std::int64_t, std::span<const float>,
                          std::span<float>);
template void take_slopes(const SharedNorm&, std::int64_t, std::span<const double>,
                          std::span<double>);

}  // namespace troupe::model
