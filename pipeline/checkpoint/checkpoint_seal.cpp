#include "pipeline/checkpoint/checkpoint_seal.h"

#include <cstddef>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "runtime/base/hash.h"

namespace troupe::pipeline {
namespace {

// The table of the header as memory; the machine is little-endian (training_state.cpp asserts it).
struct Seal {
  char magic[8];
  std::uint32_t version;
  std::uint32_t seal_bytes;
  std::uint64_t length;
  std::uint64_t hash_low;
  std::uint64_t hash_high;
  char zero[456];
  std::uint64_t seal_hash_low;
  std::uint64_t seal_hash_high;
};
static_assert(sizeof(Seal) == kSealBytes);
static_assert(offsetof(Seal, seal_hash_low) == 496);

runtime::Hash128 hash_of_seal(const Seal& seal) {
  return runtime::hash_of(std::as_bytes(std::span(&seal, 1)).first(offsetof(Seal, seal_hash_low)));
}

runtime::Hash128 hash_of_rest(const runtime::Buffer& file) {
  return runtime::hash_of(file.bytes().subspan(kSealBytes));
}

runtime::Error damaged(const std::string& path, const std::string& what) {
  return {runtime::ErrorKind::kData, path + ": " + what};
}

}  // namespace

bool is_sealed(const runtime::Buffer& file) {
  const std::size_t size = kCheckpointMagic.size();
  return file.size() >= size && std::memcmp(file.data(), kCheckpointMagic.data(), size) == 0;
}

void seal_checkpoint(std::uint32_t version, runtime::Buffer& file) {
  CHECK(file.size() >= kSealBytes);
  Seal seal{};
  std::memcpy(seal.magic, kCheckpointMagic.data(), sizeof seal.magic);
  seal.version = version;
  seal.seal_bytes = kSealBytes;
  seal.length = file.size() - kSealBytes;
  const runtime::Hash128 hash = hash_of_rest(file);
  seal.hash_low = hash.low;
  seal.hash_high = hash.high;
  const runtime::Hash128 seal_hash = hash_of_seal(seal);
  seal.seal_hash_low = seal_hash.low;
  seal.seal_hash_high = seal_hash.high;
  std::memcpy(file.mutable_data(), &seal, sizeof seal);
}

// The order of the checks decides which fault is told. The seal's own hash comes before its fields,
// which mean nothing in a damaged seal. The length comes before the hash of the rest, because a
// length tells how much is missing.
runtime::Result<std::uint32_t> verify_checkpoint_seal(const runtime::Buffer& file,
                                                      const std::string& path,
                                                      std::uint32_t newest_version) {
  if (file.size() < kSealBytes) {
    return damaged(path, fmt::format("{} bytes are too few for a checkpoint: it was cut off, or is "
                                     "none",
                                     file.size()));
  }
  Seal seal;
  std::memcpy(&seal, file.data(), sizeof seal);
  if (std::memcmp(seal.magic, kCheckpointMagic.data(), sizeof seal.magic) != 0) {
    return damaged(path, "not a checkpoint of Troupe (its first 8 bytes are not TROUPECK)");
  }
  if (hash_of_seal(seal) != runtime::Hash128{seal.seal_hash_high, seal.seal_hash_low}) {
    return damaged(path, "damaged: its first 512 bytes do not match their hash");
  }
  if (seal.version > newest_version) {
    return damaged(path, fmt::format("written in format version {}, this build reads up to {}: use "
                                     "a newer troupe",
                                     seal.version, newest_version));
  }
  const std::uint64_t expected = seal.length + kSealBytes;
  if (file.size() < expected) {
    return damaged(path, fmt::format("truncated: {} bytes of {}, {} are missing", file.size(),
                                     expected, expected - file.size()));
  }
  if (file.size() > expected) {
    return damaged(
        path, fmt::format("damaged: {} bytes longer than it was written", file.size() - expected));
  }
  if (hash_of_rest(file) != runtime::Hash128{seal.hash_high, seal.hash_low}) {
    return damaged(path, fmt::format("damaged: its {} bytes after the first 512 do not match their "
                                     "hash",
                                     seal.length));
  }
  return seal.version;
}

}  // namespace troupe::pipeline
