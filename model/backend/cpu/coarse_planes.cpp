#include "model/backend/cpu/coarse_planes.h"

#include <algorithm>

namespace troupe::model::cpu {

void CoarsePlanes::fill(const ConvolutionGeometry& g, const CollapsedKernel& kernel,
                        const float* image, float* planes) const {
  rearrange({.rows = g.in[1],
             .row_cells = g.in[2],
             .channels = g.in_channels,
             .row_stride = g.in[2] * g.in_channels,
             .cell_stride = g.in_channels,
             .first_row = kernel.axis(1).lead(),
             .plane_rows = rows,
             .before = kernel.axis(2).lead(),
             .row = row,
             .plane = plane,
             .number_stride = 0},
            image, planes);
}

void fill_phase(const ConvolutionGeometry& g, const CollapsedKernel& kernel, std::int64_t fy,
                std::int64_t fz, std::array<std::int64_t, 2> lead, const Rearrangement& planes,
                const float* dy, float* to) {
  const AxisPhases &y = kernel.axis(1), &z = kernel.axis(2);
  Rearrangement r = planes;
  r.rows = y.at(fy).count;
  r.row_cells = z.at(fz).count;
  r.channels = g.out_channels;
  r.cell_stride = z.factor * g.out_channels;
  r.row_stride = y.factor * g.out[2] * g.out_channels;
  r.first_row = y.at(fy).first + lead[0];
  r.before = z.at(fz).first + lead[1];
  const std::int64_t first = y.output(fy, y.at(fy).first) * g.out[2] + z.output(fz, z.at(fz).first);
  rearrange(r, r.rows > 0 && r.row_cells > 0 ? dy + first * g.out_channels : dy, to);
}

double x_products(const ConvolutionGeometry& g, const AxisPhases& x) {
  double products = 0.0;
  for (const Phase& phase : x.phases) {
    for (std::int64_t c = phase.first; c < phase.first + phase.count; ++c) {
      const std::int64_t begin = std::max<std::int64_t>(0, -c);
      products +=
          static_cast<double>(std::max<std::int64_t>(0, std::min(phase.taps, g.in[0] - c) - begin));
    }
  }
  return products;
}

double plane_products(const ConvolutionGeometry& g, const CollapsedKernel& kernel,
                      std::int64_t positions, std::int64_t channel_pairs) {
  return static_cast<double>(g.batch * kernel.axis(1).all_taps * kernel.axis(2).all_taps *
                             channel_pairs) *
         static_cast<double>(positions);
}

}  // namespace troupe::model::cpu
