#pragma once

// How well one number tells two samples apart.

#include <optional>
#include <span>

#include "model/physics/paired_values.h"

namespace troupe::model {

// The area under the receiver operating characteristic: the probability that a value of `high` is
// above one of `low`, equal ones counting half (Mann and Whitney; roc_auc_score of scikit-learn).
// 0.5 for equal samples, 1 where all of `high` are above. Nothing where one of them counts nothing,
// or where a value is no number. As many times as values, CHECKed.
std::optional<double> area_under_curve(std::span<const float> low, Times times_low,
                                       std::span<const float> high, Times times_high);

}  // namespace troupe::model
