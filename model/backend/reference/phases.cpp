#include <algorithm>
#include <array>

#include "model/backend/reference/kernels.h"

// Operations that move cells, phases, parts and axes, and sums over rows.

namespace troupe::model::reference {
namespace {

std::int64_t product(const Extent& extent) { return extent[0] * extent[1] * extent[2]; }

// The place of a number in three axes, in elements of cells.
std::int64_t place(const Extent& cell, const Extent& extent) {
  return (cell[0] * extent[1] + cell[1]) * extent[2] + cell[2];
}

// Calls use(cell, its place) for each cell of the extent, in order.
template <class Use>
void for_each_cell(const Extent& extent, const Use& use) {
  std::int64_t number = 0;
  for (std::int64_t x = 0; x < extent[0]; ++x) {
    for (std::int64_t y = 0; y < extent[1]; ++y) {
      for (std::int64_t z = 0; z < extent[2]; ++z) use(Extent{x, y, z}, number++);
    }
  }
}

// The first channel of a phase's cell.
std::int64_t place_of_phase(const Phases& p, std::int64_t n, std::int64_t cell,
                            std::int64_t phase) {
  const std::int64_t cells = product(p.cells), phases = product(p.stride);
  const std::int64_t inside = p.apart ? phase * cells + cell : cell * phases + phase;
  return (n * cells * phases + inside) * p.channels;
}

}  // namespace

template <class T>
void run(const SplitPhases& split, const KernelCall& call) {
  const Phases& p = split.phases;
  const auto* x = call.operand<const T>(0);
  auto* y = call.operand<T>(1);
  for (std::int64_t n = 0; n < p.batch; ++n) {
    const T* image = x + n * product(p.space) * p.channels;
    for_each_cell(p.stride, [&](const Extent& r, std::int64_t phase) {
      for_each_cell(p.cells, [&](const Extent& m, std::int64_t cell) {
        Extent from;
        bool inside = true;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          from[axis] = p.stride[axis] * m[axis] + r[axis] - p.offset[axis];
          inside = inside && from[axis] >= 0 && from[axis] < p.space[axis];
        }
        T* to = y + place_of_phase(p, n, cell, phase);
        if (inside) {
          std::copy_n(image + place(from, p.space) * p.channels, p.channels, to);
        } else {
          std::fill_n(to, p.channels, T{0});
        }
      });
    });
  }
}

template <class T>
void run(const JoinPhases& join, const KernelCall& call) {
  const Phases& p = join.phases;
  const auto* y = call.operand<const T>(0);
  auto* x = call.operand<T>(1);
  for (std::int64_t n = 0; n < p.batch; ++n) {
    for_each_cell(p.space, [&](const Extent& to, std::int64_t) {
      Extent m, r;
      bool inside = true;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        m[axis] = (to[axis] + p.offset[axis]) / p.stride[axis];
        r[axis] = (to[axis] + p.offset[axis]) % p.stride[axis];
        inside = inside && m[axis] < p.cells[axis];
      }
      if (inside) {
        const std::int64_t from = place_of_phase(p, n, place(m, p.cells), place(r, p.stride));
        x = std::copy_n(y + from, p.channels, x);
      } else {
        x = std::fill_n(x, p.channels, T{0});
      }
    });
  }
}

TROUPE_INSTANTIATE_RUN(SplitPhases);
TROUPE_INSTANTIATE_RUN(JoinPhases);

template <class T>
void run(const PermuteAxes& permute, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  auto* y = call.operand<T>(1);
  std::array<std::int64_t, 4> steps{};
  std::int64_t elements = 1;
  for (std::size_t axis = 4; axis-- > 0; elements *= permute.in[axis]) steps[axis] = elements;
  const auto from = [&](std::size_t axis) { return static_cast<std::size_t>(permute.order[axis]); };
  const auto extent = [&](std::size_t axis) { return permute.in[from(axis)]; };
  for (std::int64_t n = 0; n < permute.batch; ++n) {
    for (std::int64_t a = 0; a < extent(0); ++a) {
      for (std::int64_t b = 0; b < extent(1); ++b) {
        for (std::int64_t c = 0; c < extent(2); ++c) {
          const T* row =
              x + n * elements + a * steps[from(0)] + b * steps[from(1)] + c * steps[from(2)];
          for (std::int64_t d = 0; d < extent(3); ++d) *y++ = row[d * steps[from(3)]];
        }
      }
    }
  }
}

template <class T>
void run(const CopyParts& parts, const KernelCall& call) {
  const auto* from = call.operand<const T>(0) + parts.from_offset;
  auto* to = call.operand<T>(1) + parts.to_offset;
  for (std::int64_t i = 0; i < parts.times; ++i) {
    std::copy_n(from + i * parts.from_step, parts.count, to + i * parts.to_step);
  }
}

template <class T>
void run(const RepeatRows& repeat, const KernelCall& call) {
  const auto* x = call.operand<const T>(0);
  auto* y = call.operand<T>(1);
  for (std::int64_t n = 0; n < repeat.batch; ++n) {
    for (std::int64_t r = 0; r < repeat.rows; ++r) {
      y = std::copy_n(x + n * repeat.channels, repeat.channels, y);
    }
  }
}

template <class T>
void run(const AddBias& add, const KernelCall& call) {
  const auto* bias = call.operand<const T>(0);
  auto* y = call.operand<T>(1);
  for (std::int64_t r = 0; r < add.rows; ++r) {
    for (std::int64_t c = 0; c < add.channels; ++c) y[r * add.channels + c] += bias[c];
  }
}

template <class T>
void run(const SumRows& sum, const KernelCall& call) {
  const auto* dy = call.operand<const T>(0);
  auto* dx = call.operand<T>(1);
  auto* sums = reinterpret_cast<double*>(call.scratch);
  for (std::int64_t n = 0; n < sum.batch; ++n) {
    std::fill_n(sums, sum.channels, 0.0);
    for (std::int64_t r = 0; r < sum.rows; ++r) {
      for (std::int64_t c = 0; c < sum.channels; ++c) sums[c] += static_cast<double>(*dy++);
    }
    for (std::int64_t c = 0; c < sum.channels; ++c) *dx++ = static_cast<T>(sums[c]);
  }
}

TROUPE_INSTANTIATE_RUN(PermuteAxes);
TROUPE_INSTANTIATE_RUN(CopyParts);
TROUPE_INSTANTIATE_RUN(RepeatRows);
TROUPE_INSTANTIATE_RUN(AddBias);
TROUPE_INSTANTIATE_RUN(SumRows);

}  // namespace troupe::model::reference
