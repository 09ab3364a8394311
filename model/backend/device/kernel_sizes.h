#pragma once

// The kernels' arguments as the host fills them in.

namespace troupe::model::device {
#include "model/backend/device/kernels/sizes.cl"
}  // namespace troupe::model::device
