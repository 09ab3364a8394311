#include "model/backend/cpu/moved_phases.h"

#include <algorithm>
#include <cstring>

#include "model/backend/cpu/sample_kernel.h"

namespace troupe::model::cpu {
namespace {

// For short runs, for which a call of memmove takes longer.
void copy(const float* from, std::int64_t count, float* to) {
  constexpr std::int64_t kAtOnce = 4;
  std::int64_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) std::memcpy(to + i, from + i, kAtOnce * sizeof(float));
  for (; i < count; ++i) to[i] = from[i];
}

// One x, y of the cells and of the phases: a row of the image, the cells of which are spread over a
// row of cells.
struct PhaseRow {
  std::int64_t image = -1;  // floats in front of the row; -1: it is none of the image's
  std::int64_t apart = 0;   // floats in front of the row of cells, of phase z = 0
};

class MovedPhases : public SampleKernel {
 public:
  explicit MovedPhases(const Phases& phases)
      : p_(phases),
        phases_(cells(p_.stride)),
        cell_stride_(p_.apart ? p_.channels : phases_ * p_.channels),
        phase_stride_(p_.apart ? cells(p_.cells) * p_.channels : p_.channels) {}

  std::size_t scratch_bytes() const final { return 0; }
  // A moved cell takes about as long as so many multiply-adds.
  double products() const final {
    constexpr double kOfFloat = 4.0;
    return kOfFloat * static_cast<double>(p_.batch * apart_size());
  }

 protected:
  std::int64_t image_size() const { return cells(p_.space) * p_.channels; }
  std::int64_t apart_size() const { return cells(p_.cells) * phases_ * p_.channels; }

  // Calls use(row) for all rows of cells.
  template <class Use>
  void over_rows(const Use& use) const {
    for (std::int64_t mx = 0; mx < p_.cells[0]; ++mx) {
      for (std::int64_t my = 0; my < p_.cells[1]; ++my) {
        for (std::int64_t rx = 0; rx < p_.stride[0]; ++rx) {
          for (std::int64_t ry = 0; ry < p_.stride[1]; ++ry) {
            const std::int64_t x = p_.stride[0] * mx + rx - p_.offset[0];
            const std::int64_t y = p_.stride[1] * my + ry - p_.offset[1];
            const bool inside = x >= 0 && x < p_.space[0] && y >= 0 && y < p_.space[1];
            use(PhaseRow{inside ? (x * p_.space[1] + y) * p_.space[2] * p_.channels : -1,
                         (mx * p_.cells[1] + my) * p_.cells[2] * cell_stride_ +
                             (rx * p_.stride[1] + ry) * p_.stride[2] * phase_stride_});
          }
        }
      }
    }
  }
  // Calls use(z, place, cells) for runs of cells of a row that are neighbours in the image, from z
  // on, and apart, `place` floats behind the start of the row of cells. Some may be outside.
  template <class Use>
  void over_runs(const Use& use) const {
    const std::int64_t runs = p_.apart ? p_.stride[2] : 1, length = p_.stride[2] / runs;
    for (std::int64_t m = 0; m < p_.cells[2]; ++m) {
      for (std::int64_t r = 0; r < runs; ++r) {
        use(p_.stride[2] * m + r - p_.offset[2], m * cell_stride_ + r * phase_stride_, length);
      }
    }
  }

  const Phases p_;
  const std::int64_t phases_, cell_stride_, phase_stride_;

 private:
  std::int64_t shares() const final { return p_.batch; }
  void prepare(const KernelCall&) const final {}
};

class SplitKernel final : public MovedPhases {
 public:
  using MovedPhases::MovedPhases;

 private:
  void run_share(const KernelCall& call, std::int64_t n, std::byte*) const override {
    const float* x = call.operand<const float>(0) + n * image_size();
    float* y = call.operand<float>(1) + n * apart_size();
    over_rows([&](const PhaseRow& row) {
      over_runs([&](std::int64_t z, std::int64_t place, std::int64_t count) {
        float* to = y + row.apart + place;
        const std::int64_t begin = row.image < 0 ? count : std::clamp<std::int64_t>(-z, 0, count);
        const std::int64_t end = std::clamp(p_.space[2] - z, begin, count);
        std::fill_n(to, begin * p_.channels, 0.0f);
        copy(x + row.image + (z + begin) * p_.channels, (end - begin) * p_.channels,
             to + begin * p_.channels);
        std::fill_n(to + end * p_.channels, (count - end) * p_.channels, 0.0f);
      });
    });
  }
};

class JoinKernel final : public MovedPhases {
 public:
  using MovedPhases::MovedPhases;

 private:
  void run_share(const KernelCall& call, std::int64_t n, std::byte*) const override {
    const float* y = call.operand<const float>(0) + n * apart_size();
    float* x = call.operand<float>(1) + n * image_size();
    if (!all_have_phases()) std::fill_n(x, image_size(), 0.0f);
    over_rows([&](const PhaseRow& row) {
      if (row.image < 0) return;
      over_runs([&](std::int64_t z, std::int64_t place, std::int64_t count) {
        const std::int64_t begin = std::clamp<std::int64_t>(-z, 0, count);
        const std::int64_t end = std::clamp(p_.space[2] - z, begin, count);
        copy(y + row.apart + place + begin * p_.channels, (end - begin) * p_.channels,
             x + row.image + (z + begin) * p_.channels);
      });
    });
  }

  bool all_have_phases() const {
    bool all = true;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      all = all && p_.stride[axis] * p_.cells[axis] - p_.offset[axis] >= p_.space[axis];
    }
    return all;
  }
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const SplitPhases& split) {
  return std::make_unique<SplitKernel>(split.phases);
}

std::unique_ptr<Kernel> make_kernel(const JoinPhases& join) {
  return std::make_unique<JoinKernel>(join.phases);
}

}  // namespace troupe::model::cpu
