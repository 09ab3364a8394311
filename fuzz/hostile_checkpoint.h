#pragma once

// Checkpoints as somebody would forge them who has the HDF5 library: files that the library has
// written without a flaw, whose contents are not what a checkpoint has.

#include <cstddef>
#include <span>

#include "runtime/base/buffer.h"

namespace troupe::fuzz {

// The checkpoint `file` after the edits that `script` describes, sealed again: 4 bytes for each,
// which kind, of which object, and two numbers. Any script is one; edits that cannot be made are
// left out, and so is everything after the first 16.
runtime::Buffer edit_checkpoint(const runtime::Buffer& file, std::span<const std::byte> script);

}  // namespace troupe::fuzz
