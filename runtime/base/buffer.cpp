#include "runtime/base/buffer.h"

#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/base/error.h"

namespace troupe::runtime {

Buffer Buffer::allocate(std::size_t bytes) {
  std::optional<Buffer> buffer = try_allocate(bytes);
  CHECK(buffer, "out of memory");
  return std::move(*buffer);
}

std::optional<Buffer> Buffer::try_allocate(std::size_t bytes) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  // Not by aligned allocation: glibc before 2.38 searches for a larger block than it then takes, so
  // that it never finds a freed one of the same size again, and every Buffer would get fresh pages.
  if (bytes > SIZE_MAX - kAlignment) return std::nullopt;
  auto* raw = static_cast<std::byte*>(std::malloc(bytes + kAlignment - 1));
  if (raw == nullptr) return std::nullopt;
  const auto beyond = reinterpret_cast<std::uintptr_t>(raw) % kAlignment;
  buffer.data_ = beyond == 0 ? raw : raw + (kAlignment - beyond);
  buffer.storage_ = std::shared_ptr<std::byte>(buffer.data_, [raw](std::byte*) { std::free(raw); });
  buffer.size_ = bytes;
  return buffer;
}

Buffer Buffer::zeroed(std::size_t bytes) {
  Buffer buffer = allocate(bytes);
  if (bytes > 0) std::memset(buffer.data_, 0, bytes);
  return buffer;
}

Buffer Buffer::copy_of(std::span<const std::byte> bytes) {
  Buffer buffer = allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(buffer.data_, bytes.data(), bytes.size());
  return buffer;
}

Buffer Buffer::wrap(std::byte* data, std::size_t bytes, std::shared_ptr<void> owner) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  CHECK(data != nullptr && owner != nullptr, "wrapped bytes need a place and an owner");
  buffer.storage_ = std::shared_ptr<std::byte>(std::move(owner), data);
  buffer.data_ = data;
  buffer.size_ = bytes;
  return buffer;
}

std::byte* Buffer::mutable_data() {
  CHECK(storage_.use_count() <= 1, "a shared Buffer is read-only");
  return data_;
}

Buffer Buffer::slice(std::size_t offset, std::size_t bytes) const {
  CHECK(offset <= size_ && bytes <= size_ - offset, "slice beyond the Buffer");
  Buffer part = *this;
  part.data_ += offset;
  part.size_ = bytes;
  return part;
}

// glibc sets these values itself once a block of 32 MiB was freed, and never with smaller blocks.
void keep_freed_memory() {
  constexpr int kLargestBlock = 32 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kLargestBlock);
  ::mallopt(M_TRIM_THRESHOLD, 2 * kLargestBlock);
}

}  // namespace troupe::runtime
