#include "runtime/base/heap.h"

#include <malloc.h>

namespace troupe::runtime {

// What glibc comes to by itself once a block of 32 MiB was freed; it never does with smaller ones.
void keep_freed_memory() {
  constexpr int kLargestBlock = 32 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kLargestBlock);
  ::mallopt(M_TRIM_THRESHOLD, 2 * kLargestBlock);
}

}  // namespace troupe::runtime
