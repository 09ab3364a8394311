#pragma once

// Showers in int8: backends that measure a network, and that compute it then, for inference alone.
// How they compute: model/backend/cpu/int8.h.

#include <memory>
#include <vector>

#include "model/backend.h"
#include "runtime/base/error.h"

namespace troupe::model {

// For each convolution, in the order in which a Program makes its kernels, the largest number of
// each channel of its input relative to the largest of all channels, in any event that was
// measured; 1/64 at least, so that a channel that was silent then may speak. Nothing: the
// convolution stays float.
using ChannelRanges = std::vector<std::vector<float>>;

// Each makes the kernels of one Program, in which every operation but a convolution is that of the
// portable backend in fp32. Errors are those of make_portable_backend().

// Computes in fp32 and notes `ranges`, which outlives it and its kernels. They do not depend on the
// order or number of threads.
runtime::Result<std::unique_ptr<Backend>> make_measuring_backend(ChannelRanges& ranges);

// The same bits on every host, and of an event whatever the others are.
runtime::Result<std::unique_ptr<Backend>> make_int8_backend(ChannelRanges ranges);

}  // namespace troupe::model
