
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <vector>

#include "runtime/base/buffer.h"

namespace troupe::runtime {
namespace {

// Pages that the system had to hand out meanwhile.
std::int64_t faults_of_payloads() {
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  std::vector<Buffer> payloads;
  for (int i = 0; i < 16; ++i) payloads.push_back(Buffer::zeroed(std::size_t{1} << 20));
  ::getrusage(RUSAGE_SELF, &after);
  return after.ru_minflt - before.ru_minflt;
}

TEST(Heap, PayloadsThatWereFreedLeaveTheirPagesToTheNextOnes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer brings an allocator of its own";
#endif
  keep_freed_memory();
  (void)faults_of_payloads();
  EXPECT_LT(faults_of_payloads(), 512) << "of the 4096 pages of 16 MiB";
}

}  // namespace
}  // namespace troupe::runtime
