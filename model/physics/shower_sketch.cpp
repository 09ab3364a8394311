#include "model/physics/shower_sketch.h"

#include <cmath>
#include <cstdint>

#include "runtime/base/random.h"

namespace troupe::model {

ShowerSketch sketch_of(std::span<const float> gev) {
  constexpr std::size_t kBits = 64;
  static_assert(kSketchSize % kBits == 0);
  ShowerSketch sketch{};
  double energy = 0.0;
  for (const float cell : gev) energy += static_cast<double>(cell);
  if (energy <= 0.0) return sketch;
  const auto scale = static_cast<float>(1.0 / (energy * static_cast<double>(kSketchSize)));
  for (std::size_t i = 0; i < gev.size(); ++i) {
    if (gev[i] == 0.0F) continue;
    const float value = std::sqrt(gev[i] * scale);
    for (std::size_t part = 0; part < kSketchSize / kBits; ++part) {
      const std::uint64_t place = i * (kSketchSize / kBits) + part + 1;
      const std::uint64_t signs = runtime::mix64(place * 0x9E3779B97F4A7C15ULL);
      float* out = sketch.data() + part * kBits;
      for (std::size_t bit = 0; bit < kBits; ++bit) {
        out[bit] += (signs >> bit & 1U) != 0 ? value : -value;
      }
    }
  }
  return sketch;
}

}  // namespace troupe::model
