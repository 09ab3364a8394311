#include <cmath>
#include <cstddef>

#include "model/vector_sums.h"

namespace troupe::model {
namespace {

// Calls add(values, piece of sum, part) for each part of each vector.
template <class T, class Add>
void for_each_part(std::span<const Vectors> vectors, std::span<const SumPart> parts,
                   std::span<T> sum, const Add& add) {
  for (const Vectors& block : vectors) {
    for (std::int64_t i = 0; i < block.count; ++i) {
      std::size_t at = 0;
      for (std::size_t part = 0; part < parts.size(); ++part) {
        const auto size = static_cast<std::size_t>(parts[part].size);
        const float* const values = block.first + i * block.stride + parts[part].begin;
        add(std::span(values, size), sum.subspan(at, size), part);
        at += size;
      }
    }
  }
}

class HostSums final : public VectorSums {
 public:
  void add_exactly(std::span<const Vectors> vectors, std::span<const SumPart> parts,
                   std::uint32_t micro_batches, std::span<std::int64_t> sum,
                   std::span<QuantiseReport> reports) const override {
    for_each_part(
        vectors, parts, sum,
        [&](std::span<const float> values, std::span<std::int64_t> piece, std::size_t part) {
          reports[part].merge(quantise_add(values, parts[part].k, micro_batches, piece));
        });
  }

  void add_floats(std::span<const Vectors> vectors, std::span<const SumPart> parts,
                  std::span<float> sum, std::span<QuantiseReport> reports) const override {
    for_each_part(vectors, parts, sum,
                  [&](std::span<const float> values, std::span<float> piece, std::size_t part) {
                    bool finite = true;
                    for (std::size_t i = 0; i < values.size(); ++i) {
                      finite &= std::isfinite(values[i]);
                      piece[i] += values[i];
                    }
                    reports[part].non_finite |= !finite;
                  });
  }
};

}  // namespace

const VectorSums& host_sums() {
  static const HostSums sums;
  return sums;
}

}  // namespace troupe::model
