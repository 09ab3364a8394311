#pragma once

// The angle of a shower as its image shows it.

#include <array>
#include <cstdint>
#include <span>

namespace troupe::pipeline {

// The polar angle that the models' angle head sees in an image [X][Y][Z]: in every layer with
// energy the direction from the shower's energy-weighted centre to the layer's, pi/2 - atan(dy /
// distance in the x-z plane), averaged with the layer's number + 0.5 as weight. In cell units, so
// it differs from the true angle where layers are not as deep as cells are wide. 100 for an empty
// image.
double measure_angle(std::span<const float> cells, std::array<std::uint32_t, 3> shape);

}  // namespace troupe::pipeline
