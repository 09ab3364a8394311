#pragma once

// A shower's shape in a few numbers, by which its nearest neighbours are found.
//
// The square roots of the cells' shares of the energy are a vector of length 1 (Hellinger), whose
// distances hang on the whole shower rather than on its hottest cell. A random projection on signs
// keeps distances (Johnson and Lindenstrauss 1984, with signs: Achlioptas 2003): to about
// 1 / sqrt(kSketchSize) of each, and 0 stays 0.

#include <array>
#include <cstddef>
#include <span>

namespace troupe::model {

inline constexpr std::size_t kSketchSize = 128;
using ShowerSketch = std::array<float, kSketchSize>;

// All 0 for a shower without energy. Cells are finite and not negative. The same for every
// calorimeter with as many cells.
ShowerSketch sketch_of(std::span<const float> gev);

}  // namespace troupe::model
