#include "model/physics/image_similarity.h"

#include <array>
#include <cmath>
#include <vector>

#include "runtime/base/error.h"

namespace troupe::model {
namespace {

constexpr std::int64_t kReach = 5;  // floor(3.5 sigma + 0.5)
constexpr double kSigma = 1.5;

using Picture = std::vector<double>;  // [x][y]

std::array<double, 2 * kReach + 1> window() {
  std::array<double, 2 * kReach + 1> weights{};
  double sum = 0.0;
  for (std::int64_t i = -kReach; i <= kReach; ++i) {
    const auto distance = static_cast<double>(i);
    sum += weights[static_cast<std::size_t>(i + kReach)] =
        std::exp(-distance * distance / (2.0 * kSigma * kSigma));
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

std::int64_t mirrored(std::int64_t i, std::int64_t size) {
  while (i < 0 || i >= size) i = i < 0 ? -1 - i : 2 * size - 1 - i;
  return i;
}

// Weighs a line of `count` values that are `stride` apart.
void smooth_line(const double* in, double* out, std::int64_t count, std::int64_t stride) {
  static const auto kWeights = window();
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0.0;
    for (std::int64_t k = -kReach; k <= kReach; ++k) {
      sum += kWeights[static_cast<std::size_t>(k + kReach)] * in[mirrored(i + k, count) * stride];
    }
    out[i * stride] = sum;
  }
}

Picture smooth(const Picture& picture, std::int64_t width, std::int64_t height) {
  Picture along(picture.size()), both(picture.size());
  for (std::int64_t y = 0; y < height; ++y) {
    smooth_line(picture.data() + y, along.data() + y, width, height);
  }
  for (std::int64_t x = 0; x < width; ++x) {
    smooth_line(along.data() + x * height, both.data() + x * height, height, 1);
  }
  return both;
}

Picture product(const Picture& a, const Picture& b) {
  Picture found(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) found[i] = a[i] * b[i];
  return found;
}

Picture layer(std::span<const float> image, const Extent& space, std::int64_t z) {
  Picture found;
  for (std::int64_t i = 0; i < space[0] * space[1]; ++i) {
    found.push_back(static_cast<double>(image[static_cast<std::size_t>(i * space[2] + z)]));
  }
  return found;
}

}  // namespace

double structural_similarity(std::span<const float> a, std::span<const float> b,
                             const Extent& space, double range_gev) {
  const std::int64_t width = space[0], height = space[1];
  CHECK(a.size() == b.size() && static_cast<std::int64_t>(a.size()) == width * height * space[2],
        "images of different sizes do not compare");
  const double c1 = 1e-4 * range_gev * range_gev, c2 = 9e-4 * range_gev * range_gev;
  const std::int64_t edge = width > 2 * kReach + 1 && height > 2 * kReach + 1 ? kReach : 0;
  double sum = 0.0;
  std::int64_t cells = 0;
  for (std::int64_t z = 0; z < space[2]; ++z) {
    const Picture of_a = layer(a, space, z), of_b = layer(b, space, z);
    const Picture mean_a = smooth(of_a, width, height), mean_b = smooth(of_b, width, height);
    const Picture aa = smooth(product(of_a, of_a), width, height);
    const Picture bb = smooth(product(of_b, of_b), width, height);
    const Picture ab = smooth(product(of_a, of_b), width, height);
    for (std::int64_t x = edge; x < width - edge; ++x) {
      for (std::int64_t y = edge; y < height - edge; ++y, ++cells) {
        const auto i = static_cast<std::size_t>(x * height + y);
        const double m = mean_a[i], n = mean_b[i];
        sum += (2.0 * m * n + c1) * (2.0 * (ab[i] - m * n) + c2) /
               ((m * m + n * n + c1) * (aa[i] - m * m + bb[i] - n * n + c2));
      }
    }
  }
  return sum / static_cast<double>(cells);
}

}  // namespace troupe::model
