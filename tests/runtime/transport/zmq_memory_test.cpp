#include "runtime/transport/zmq_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <thread>

namespace troupe::runtime {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(RecycledMemory, IsTakenAgainOnceNobodyRefersToIt) {
  RecycledMemory memory;
  Buffer first = memory.take(4 * kMiB);
  const std::byte* place = first.data();
  Buffer part = first.slice(5, 1);
  first = Buffer();
  EXPECT_EQ(memory.idle_bytes(), 0u);
  EXPECT_NE(memory.take(4 * kMiB).data(), place);
  part = Buffer();
  // Both are idle; what came back last is still in the caches.
  EXPECT_EQ(memory.idle_bytes(), 8 * kMiB);
  const Buffer again = memory.take(3 * kMiB);
  EXPECT_EQ(again.data(), place);
  EXPECT_EQ(again.size(), 3 * kMiB);
}

TEST(RecycledMemory, IsNotWastedOnMuchSmallerPayloads) {
  RecycledMemory memory;
  const std::byte* place = memory.take(16 * kMiB).data();
  EXPECT_NE(memory.take(2 * kMiB).data(), place);
  EXPECT_EQ(memory.take(9 * kMiB).data(), place);
}

TEST(RecycledMemory, KeepsNoMoreThanItsBoundIdle) {
  RecycledMemory memory;
  std::vector<Buffer> buffers;
  for (int i = 0; i < 5; ++i) buffers.push_back(memory.take(RecycledMemory::kMostIdleBytes / 4));
  buffers.clear();
  EXPECT_EQ(memory.idle_bytes(), RecycledMemory::kMostIdleBytes);
  Buffer huge = memory.take(2 * RecycledMemory::kMostIdleBytes);
  huge = Buffer();
  EXPECT_LE(memory.idle_bytes(), RecycledMemory::kMostIdleBytes);
}

TEST(RecycledMemory, BuffersOutliveItOnAnyThread) {
  std::optional<RecycledMemory> memory(std::in_place);
  Buffer buffer = memory->take(kMiB);
  memory.reset();
  std::memset(buffer.mutable_data(), 7, kMiB);
  std::thread([last = std::move(buffer)]() mutable {
    EXPECT_EQ(last.bytes().back(), std::byte{7});
    last = Buffer();
  }).join();
}

TEST(RecycledMemory, ReferencesGoOnOneThreadWhileAnotherTakes) {
  RecycledMemory memory;
  for (int round = 0; round < 200; ++round) {
    Buffer buffer = memory.take(kMiB);
    buffer.mutable_data()[0] = std::byte{1};
    std::thread([last = std::move(buffer)] {}).join();
    ASSERT_EQ(memory.idle_bytes(), kMiB);
  }
}

}  // namespace
}  // namespace troupe::runtime
