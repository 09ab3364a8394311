#include "fuzz/memory_meter.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define TROUPE_METERED
#endif
#endif

#ifdef TROUPE_METERED
#include <sanitizer/allocator_interface.h>
#endif

#include <atomic>
#include <cstdint>

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace troupe::fuzz {
namespace {

std::atomic<bool> measuring{false};
// Below zero while what was allocated before is freed.
std::atomic<std::int64_t> live{0};
std::atomic<std::int64_t> most{0};

#ifdef TROUPE_METERED
void note_allocation(const volatile void*, std::size_t bytes) {
  if (!measuring) return;
  const std::int64_t now = live += static_cast<std::int64_t>(bytes);
  std::int64_t before = most;
  while (now > before && !most.compare_exchange_weak(before, now)) {
  }
}

void note_free(const volatile void* memory) {
  if (!measuring || memory == nullptr) return;
  live -=
      static_cast<std::int64_t>(__sanitizer_get_allocated_size(const_cast<const void*>(memory)));
}

#endif

}  // namespace

MemoryMeter::MemoryMeter() {
#ifdef TROUPE_METERED
  static const bool kInstalled =
      __sanitizer_install_malloc_and_free_hooks(note_allocation, note_free) != 0;
  CHECK(kInstalled, "no room for hooks in the sanitizer");
#endif
  live = 0;
  most = 0;
  measuring = true;
}

MemoryMeter::~MemoryMeter() { measuring = false; }

std::size_t MemoryMeter::peak() const { return static_cast<std::size_t>(most.load()); }

void MemoryMeter::check(std::size_t input_bytes, std::size_t constant_bytes) const {
  CHECK(peak() <= constant_bytes + 4 * input_bytes,
        fmt::format("{} bytes of input cost {} bytes of memory", input_bytes, peak()));
}

}  // namespace troupe::fuzz
