#pragma once

// Files as somebody would forge them who has the HDF5 library: the library has written them without
// a flaw, but their contents are not what a reader of ours expects.

#include <cstddef>
#include <span>

#include "runtime/base/buffer.h"

namespace troupe::fuzz {

// The HDF5 file `file` after the edits that `script` describes, behind so many zeros: 4 bytes for
// each edit, which kind, of which object, and two numbers. Any script is one; edits that cannot be
// made are left out, and so is everything after the first 16.
runtime::Buffer edit_hdf5(std::span<const std::byte> file, std::span<const std::byte> script,
                          std::size_t zeros = 0);

// The same of a checkpoint, sealed again.
runtime::Buffer edit_checkpoint(const runtime::Buffer& file, std::span<const std::byte> script);

}  // namespace troupe::fuzz
