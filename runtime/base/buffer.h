#pragma once

// Reference-counted bytes: the only thing actors share.
//
// The thread that allocates a Buffer may write to it until it first sends it or hands out a copy.
// From then on all threads may only read it, so sharing it is safe. Copies and slices share the
// bytes, which are freed with the last of them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace troupe::runtime {

class Buffer {
 public:
  // Alignment of the first byte of an allocation: a cache line, and a full AVX-512 register.
  static constexpr std::size_t kAlignment = 64;

  Buffer() = default;

  // Uninitialised bytes. Never fails: running out of memory ends the process.
  static Buffer allocate(std::size_t bytes);
  // Nothing when there is no memory for it, which ends the process in allocate().
  static std::optional<Buffer> try_allocate(std::size_t bytes);
  static Buffer zeroed(std::size_t bytes);
  static Buffer copy_of(std::span<const std::byte> bytes);
  // Shares bytes that `owner` keeps in memory. `owner` is dropped with the last Buffer that shares
  // them, on any thread. data must not be null unless bytes is 0. The caller keeps no copy of
  // `owner` if the bytes are to be written.
  static Buffer wrap(std::byte* data, std::size_t bytes, std::shared_ptr<void> owner);

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const std::byte* data() const { return data_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Only before the first send or copy: CHECKs that no other Buffer shares the bytes.
  std::byte* mutable_data();

  // The bytes as elements; size() must be a multiple of sizeof(T).
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }
  template <class T>
  std::span<T> mutable_as() {
    return {reinterpret_cast<T*>(mutable_data()), size_ / sizeof(T)};
  }

  // Shares bytes [offset, offset + bytes); CHECKs the range.
  Buffer slice(std::size_t offset, std::size_t bytes) const;

 private:
  std::shared_ptr<std::byte> storage_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Lets it keep up to 64 MiB of freed memory in each of its heaps, blocks of up to 32 MiB included.
// By default it soon gives them back to the system. Payloads come and go all the time, and fresh
// pages cost as much as a pass over them. For a program to call once at its start; without effect
// under a sanitizer's allocator.
void keep_freed_memory();

}  // namespace troupe::runtime
