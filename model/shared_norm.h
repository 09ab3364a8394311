#pragma once

// Batch norm layers over the events of all micro-batches of a step (BatchNorm::sync), and the
// numbers that their micro-batches give and read. See model/shared_statistics.h.

#include <cstdint>
#include <span>
#include <vector>

#include "model/network.h"

namespace troupe::model {

// Both kinds of arrays are laid out as moving statistics are. What other layers have there is 0.

// The numbers that one micro-batch gives, of which the means over all micro-batches are taken.
enum class ShareArray : std::uint8_t {
  kStatistics,  // mean, unbiased variance
  kSquares,     // square of the mean less the shift, 0
  kSlopes,      // sums of dy and of dy * n over its rows, n being the normalised input
};
inline constexpr std::int64_t kShareArrays = 3;

// The numbers that all micro-batches read, for all of their events. All are 0 at first.
enum class SharedArray : std::uint8_t {
  kStatistics,  // mean, biased variance
  kDeviations,  // 0, inverse deviation: 1 / sqrt(biased variance + epsilon)
  kSlopes,      // -mean(dy), -mean(dy * n)
  kMoving,      // mean, unbiased variance: what the step contributes to moving statistics
  kGradients,   // those of beta and gamma
  // Minus the mean that was found last, 0: squares of what is left of means lose nothing where
  // these are large beside the deviation.
  kShifts,
};
inline constexpr std::int64_t kSharedArrays = 6;

// Where a step that is made in rounds is interrupted (model/shared_statistics.h).
struct StatisticsRound {
  int run = 0;                // of a program, in the step's order: forward passes before backward
  bool of_generator = false;  // the layer's network
  int layer = -1;
  bool forward = true;
};

struct SharedNorm {
  int layer = -1;
  std::int64_t channels = 0;
  std::int64_t cells = 0;  // of an event
  double epsilon = 1e-6;
  std::int64_t mean = 0, variance = 0;  // offsets in moving statistics
  std::int64_t gamma = 0, beta = 0;     // in weights
};

// In the order of layers. `shapes` must be without problems and `layout` belong to it.
std::vector<SharedNorm> shared_norms(const NetworkDescription& network, const NetworkShapes& shapes,
                                     const ParameterLayout& layout);

// Adds what a round has found of the layer to `shared`, kSharedArrays of them, from the means over
// micro_batches of what each with so many rows has given, kShareArrays of them. The slopes come
// behind the statistics. In double.
template <class T>
void take_statistics(const SharedNorm& norm, std::int64_t rows, std::uint32_t micro_batches,
                     std::span<const T> means, std::span<T> shared);
template <class T>
void take_slopes(const SharedNorm& norm, std::int64_t rows, std::span<const T> means,
                 std::span<T> shared);

}  // namespace troupe::model
