#pragma once

// The 512 bytes in front of a checkpoint's HDF5 part, which HDF5 skips as its user block. They tell
// a whole file from a torn or damaged one before any of it is interpreted.
//
// offset  bytes  little endian
//      0      8  "TROUPECK"
//      8      4  format version
//     12      4  512
//     16      8  length of the rest of the file
//     24     16  XXH3-128 of the rest, low word first
//     40    456  zero
//    496     16  XXH3-128 of bytes 0 to 495, low word first
// The hashes detect damage, not malice: a forged file can have a correct seal. Magic and the last
// hash keep their places in every version, so that a newer file is recognised.

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/buffer.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// The first bytes of every checkpoint.
inline constexpr std::string_view kCheckpointMagic = "TROUPECK";

inline constexpr std::size_t kSealBytes = 512;

// Writes the seal into the first kSealBytes of `file`, whose rest is complete. The caller owns the
// Buffer alone.
void seal_checkpoint(std::uint32_t version, runtime::Buffer& file);

// Whether a file begins as a checkpoint does, whole or not.
bool is_sealed(const runtime::Buffer& file);

// Verifies the seal and returns the version. Errors (kData) name `path` and say whether it is no
// checkpoint, truncated (by how many bytes), longer than it was written, damaged, or of a version
// above `newest_version`.
runtime::Result<std::uint32_t> verify_checkpoint_seal(const runtime::Buffer& file,
                                                      const std::string& path,
                                                      std::uint32_t newest_version);

}  // namespace troupe::pipeline
