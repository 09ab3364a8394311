#pragma once

// Numbers of eight bits, by which convolutions compute showers where asked to (`troupe generate
// --int8`). Only inference knows them, and only convolutions of several channels to several; all
// else stays float. With x the input of a convolution, w its kernel, b its bias, each result below
// rounded to float:
//
//   range[c]      largest |x| of channel c relative to that of all channels, measured once for the
//                 generator (model/int8.h)
//   step_x        of an event: max over c of (largest |x[c]| / range[c]) / 127
//   q[c]          x[c] x (1 / (step_x x range[c])), to the nearest of -127 to 127, ties to even; 0
//                 where step_x x range[c] is zero or subnormal
//   v[t][c][o]    w[t][c][o] x range[c]
//   step_w[o]     max over t, c of |v[t][c][o]| / 127
//   p[t][c][o]    v[t][c][o] / step_w[o], rounded like q; 0 where step_w[o] is zero or subnormal
//   y[o]          activation(sum over t, c of q[c] p[t][c][o] x (step_x x step_w[o]) + b[o])
//
// So numbers are symmetric around zero, kernels have a step for each output, and inputs one for
// each channel of an event. The sum is one of integers, exact in whatever order: the bits do not
// depend on vectors, threads or the other events of a batch. Kernels of convolutions that read an
// upsampled image are collapsed first (upsampled_convolution.h). An event with a number that is not
// finite has no finite number before its activation.

#include <array>
#include <cstdint>

namespace troupe::model::cpu {

// Numbers of four neighbouring channels. Those of images are stored with kInt8Zero added, so that
// they have no sign; those of kernels in two's complement.
struct Int8Quad {
  std::array<std::uint8_t, 4> bytes{};
};
inline constexpr std::uint32_t kInt8Zero = 128;
inline constexpr std::int32_t kInt8Most = 127;
inline constexpr std::int64_t kQuad = 4;

constexpr std::int64_t quads_of(std::int64_t channels) { return (channels + kQuad - 1) / kQuad; }

}  // namespace troupe::model::cpu
