#include "tests/model/allocation_counter.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> allocations{0};
std::atomic<std::int64_t> allocated_bytes{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  allocated_bytes += static_cast<std::int64_t>(bytes);
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
}

void* counted_or_throw(std::size_t bytes, std::size_t alignment) {
  void* memory = counted(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

constexpr std::size_t kDefault = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

void* operator new(std::size_t bytes) { return counted_or_throw(bytes, kDefault); }
void* operator new[](std::size_t bytes) { return counted_or_throw(bytes, kDefault); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes, kDefault);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes, kDefault);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace troupe::model {

std::int64_t allocations_so_far() { return allocations; }
std::int64_t allocated_bytes_so_far() { return allocated_bytes; }

}  // namespace troupe::model
