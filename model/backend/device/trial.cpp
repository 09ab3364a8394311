#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "model/backend/device/device.h"

namespace troupe::model::device {
namespace {

using Floats = std::numeric_limits<float>;

// Numbers whose products and sums are denormal, cancel, are rounded at a tie, or exceed the
// largest.
constexpr std::array<float, 16> kBrinks = {0.0f,
                                           -0.0f,
                                           1.0f,
                                           -1.0f,
                                           1.0f + Floats::epsilon(),
                                           -1.0f - Floats::epsilon(),
                                           0x1p-12f,
                                           3e-3f,
                                           0x1p-75f,
                                           -0x1p-74f,
                                           Floats::denorm_min(),
                                           Floats::min(),
                                           0x1p64f,
                                           1.7e19f,
                                           Floats::max(),
                                           Floats::infinity()};
constexpr std::size_t kCases = kBrinks.size() * kBrinks.size() * kBrinks.size();

template <class T, class Bits>
bool same(T a, T b) {
  return (a != a && b != b) || std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b);
}

}  // namespace

bool has_promised_arithmetic(Device& device) {
  std::vector<float> sums(2 * kCases);
  std::vector<double> roots(2 * kCases);
  const auto bytes_of = [](const auto& values) { return values.size() * sizeof(values[0]); };
  const auto numbers = device.allocate(bytes_of(kBrinks));
  const auto sums_there = device.allocate(bytes_of(sums));
  const auto roots_there = device.allocate(bytes_of(roots));
  device.write(kBrinks.data(), numbers.get(), bytes_of(kBrinks));
  Arguments arguments;
  arguments.operand(reinterpret_cast<const float*>(numbers.get()))
      .operand(reinterpret_cast<const float*>(sums_there.get()))
      .operand(reinterpret_cast<const double*>(roots_there.get()))
      .value(static_cast<int>(kBrinks.size()));
  device.launch(Queue::kMain, device.kernel("brink_cases"),
                {static_cast<std::int64_t>(kCases), 1, 1}, arguments);
  device.read(sums_there.get(), sums.data(), bytes_of(sums));
  device.read(roots_there.get(), roots.data(), bytes_of(roots));
  std::size_t i = 0;
  bool as_promised = true;
  for (const float a : kBrinks) {
    for (const float b : kBrinks) {
      for (const float c : kBrinks) {
        const double product = static_cast<double>(a) * static_cast<double>(b);
        const float rounded = a * b;
        as_promised = as_promised && same<float, std::uint32_t>(sums[2 * i], std::fma(a, b, c)) &&
                      same<float, std::uint32_t>(sums[2 * i + 1], rounded + c) &&
                      same<double, std::uint64_t>(roots[2 * i], product / static_cast<double>(c)) &&
                      same<double, std::uint64_t>(roots[2 * i + 1], std::sqrt(std::fabs(product)));
        ++i;
      }
    }
  }
  return as_promised;
}

}  // namespace troupe::model::device
