#pragma once

// Unguessable random bytes from the system: tokens, and numbers that tell one start of a process
// from another.

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::runtime {

// Any thread, both. CHECKs that the system gives random bytes.
void fill_secret(std::span<std::byte> bytes);
// Never 0.
std::uint64_t secret_number();

}  // namespace troupe::runtime
