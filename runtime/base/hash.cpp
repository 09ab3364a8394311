#include "runtime/base/hash.h"

#include <xxhash.h>
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>  // the same functions by the widest vectors of the host
#endif

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace troupe::runtime {

struct Hasher::State {
  State() : xxh(XXH3_createState()) {
    CHECK(xxh != nullptr, "out of memory");
    XXH3_128bits_reset(xxh);
  }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  XXH3_state_t* xxh;
};

std::string Hash128::text() const { return fmt::format("{:016x}{:016x}", high, low); }

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}

void Hasher::add(std::string_view text) { add(std::as_bytes(std::span{text})); }

Hash128 Hasher::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  return {hash.high64, hash.low64};
}

Hash128 hash_of(std::span<const std::byte> bytes) {
  Hasher hasher;
  hasher.add(bytes);
  return hasher.digest();
}

Hash128 hash_of(std::string_view text) { return hash_of(std::as_bytes(std::span{text})); }

}  // namespace troupe::runtime
