#pragma once

// Memory for payloads that are put together from chunks, used again: the system takes longer to
// hand out fresh pages than the chunks take to be copied into them.

#include <cstddef>
#include <memory>

#include "runtime/base/buffer.h"

namespace troupe::runtime {

// Any number may have it in common; who does, shares what is idle.
class RecycledMemory {
 public:
  // Memory that nobody uses is kept up to so many bytes, and given back to the system above.
  static constexpr std::size_t kMostIdleBytes = std::size_t{64} << 20;

  RecycledMemory();
  // Gives back what is idle. Buffers that were handed out stay good, and are given back with their
  // last reference.
  ~RecycledMemory();
  RecycledMemory(RecycledMemory&&) noexcept;
  RecycledMemory& operator=(RecycledMemory&&) noexcept;

  // A Buffer of which nobody else has a reference, with arbitrary content. Pages that were never
  // used cost nothing until they are written. Empty: the system has no memory. One thread; the
  // last reference may go on any.
  Buffer take(std::size_t bytes);

  // Any thread.
  std::size_t idle_bytes() const;

 private:
  struct Store;
  std::shared_ptr<Store> store_;
};

}  // namespace troupe::runtime
