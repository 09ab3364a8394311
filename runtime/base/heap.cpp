#include "runtime/base/heap.h"

#include <malloc.h>

namespace troupe::runtime {

// glibc sets these values itself once a block of 32 MiB was freed, and never with smaller blocks.
void keep_freed_memory() {
  constexpr int kLargestBlock = 32 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kLargestBlock);
  ::mallopt(M_TRIM_THRESHOLD, 2 * kLargestBlock);
}

}  // namespace troupe::runtime
