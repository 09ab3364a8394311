// The way from planes of sums to the cells of an image.

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "model/backend/cpu/plane_transforms.h"
#include "model/backend/cpu/plane_vectors.h"
#include "tests/model/only_targets.h"
#include "tests/model/op_support.h"

namespace troupe::model {
namespace {

constexpr float kUntouched = 1234.5f;

struct FinishedCase {
  cpu::FinishedPlane plane;
  std::vector<float> sums, biases;
};

FinishedCase random_finished_case(Draw& draw) {
  FinishedCase c;
  c.plane.rows = draw.between(1, 9);
  c.plane.row_cells = draw.between(1, 30);
  c.plane.channels = draw.between(1, 35);
  c.plane.step = draw.between(1, 6);
  c.plane.first = draw.between(0, c.plane.step - 1);
  // Rows of sums are longer than rows of cells where there are no tiles.
  c.plane.row = (c.plane.row_cells + c.plane.step - 1) / c.plane.step + (c.plane.step == 1 ? 3 : 0);
  c.plane.plane_stride = (c.plane.rows * c.plane.row + 15) / 16 * 16;
  c.plane.activation = {static_cast<ActivationKind>(draw.between(0, 2)), 0.3};
  for (std::int64_t i = 0; i < c.plane.channels * c.plane.plane_stride; ++i) {
    c.sums.push_back(static_cast<float>(2.0 * draw.uniform() - 1.0));
  }
  for (std::int64_t i = 0; i < c.plane.channels; ++i) {
    c.biases.push_back(static_cast<float>(draw.uniform() - 0.5));
  }
  return c;
}

float activated_value(const Activation& activation, float value) {
  if (!(value < 0.0f)) return value;
  if (activation.kind == ActivationKind::kRelu) return 0.0f;
  return activation.kind == ActivationKind::kLeakyRelu
             ? static_cast<float>(activation.slope) * value
             : value;
}

// Cell by cell.
std::vector<float> cell_by_cell(const FinishedCase& c) {
  const cpu::FinishedPlane& p = c.plane;
  std::vector<float> image(static_cast<std::size_t>(p.rows * p.row_cells * p.channels), kUntouched);
  for (std::int64_t y = 0; y < p.rows; ++y) {
    for (std::int64_t z = p.first; z < p.row_cells; z += p.step) {
      const std::int64_t position = y * p.row + (z - p.first) / p.step;
      for (std::int64_t i = 0; i < p.channels; ++i) {
        const float sum = c.sums[static_cast<std::size_t>(i * p.plane_stride + position)];
        const float bias = p.biases == nullptr ? 0.0f : p.biases[i];
        image[static_cast<std::size_t>((y * p.row_cells + z) * p.channels + i)] =
            activated_value(p.activation, sum + bias);
      }
    }
  }
  return image;
}

TEST(FinishedCells, AreTheActivatedSumsAndNoOtherCellIsTouched) {
  if (!cpu::plane_vectors_supported()) GTEST_SKIP() << "no AVX2 on this host";
  for (const std::int64_t target : {std::int64_t{HWY_AVX2}, std::int64_t{0}}) {
    const OnlyTargets only(target);
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      Draw draw(seed);
      FinishedCase c = random_finished_case(draw);
      if (seed % 3 != 0) c.plane.biases = c.biases.data();
      if (seed % 5 == 0) c.sums[0] = NAN;
      const std::vector<float> judge = cell_by_cell(c);
      std::vector<float> image(judge.size(), kUntouched);
      cpu::finish_cells(c.plane, c.sums.data(), image.data());
      EXPECT_TRUE(same_bits({image}, {judge})) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace troupe::model
