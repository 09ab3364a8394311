#pragma once

// Structural similarity of two showers taken as pictures (Wang et al. 2004), as 3DGAN's
// ImageQualityTests: to find generators that make the same shower again and again.

#include <span>

#include "model/tensor.h"

namespace troupe::model {

// Mean SSIM of two images [x][y][z] in GeV, each layer z a picture of its own: Gaussian window of
// sigma 1.5 up to 3.5 sigma, mirrored at the edges (d c b a | a b c d), variances divided by n,
// C1 = (0.01 L)^2, C2 = (0.03 L)^2, the 5 outermost cells left out where a picture has more than 11
// along both sides: scikit-image's structural_similarity(gaussian_weights=True,
// use_sample_covariance=False, data_range=L, channel_axis=2). 1 for equal images.
double structural_similarity(std::span<const float> a, std::span<const float> b,
                             const Extent& space, double range_gev);

}  // namespace troupe::model
