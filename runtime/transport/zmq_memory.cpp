#include "runtime/transport/zmq_memory.h"

#include <sys/mman.h>

#include <mutex>
#include <utility>
#include <vector>

namespace troupe::runtime {
namespace {

struct Block {
  void* begin = nullptr;
  std::size_t bytes = 0;

  void release() const { ::munmap(begin, bytes); }
};

Block fresh_block(std::size_t bytes) {
  void* begin = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return {};
  // Chunks are written as a whole, so a large page never holds more than has arrived and a bit.
  ::madvise(begin, bytes, MADV_HUGEPAGE);
  return {begin, bytes};
}

}  // namespace

struct RecycledMemory::Store {
  ~Store() {
    for (const Block& block : idle) block.release();
  }

  // The smallest that fits without wasting half of it; of those, what was used last.
  Block find(std::size_t bytes) {
    const std::scoped_lock lock(mutex);
    auto best = idle.end();
    for (auto block = idle.begin(); block != idle.end(); ++block) {
      if (block->bytes < bytes || block->bytes / 2 > bytes) continue;
      if (best == idle.end() || block->bytes <= best->bytes) best = block;
    }
    if (best == idle.end()) return {};
    const Block found = *best;
    idle.erase(best);
    idle_bytes -= found.bytes;
    return found;
  }

  void give_back(const Block& block) {
    // It would only drive out all others.
    if (block.bytes > kMostIdleBytes) return block.release();
    std::vector<Block> surplus;
    {
      const std::scoped_lock lock(mutex);
      idle.push_back(block);
      idle_bytes += block.bytes;
      // What was idle longest goes first.
      while (idle_bytes > kMostIdleBytes) {
        idle_bytes -= idle.front().bytes;
        surplus.push_back(idle.front());
        idle.erase(idle.begin());
      }
    }
    for (const Block& old : surplus) old.release();
  }

  mutable std::mutex mutex;
  std::vector<Block> idle;  // in the order they came back
  std::size_t idle_bytes = 0;
};

RecycledMemory::RecycledMemory() : store_(std::make_shared<Store>()) {}
RecycledMemory::~RecycledMemory() = default;
RecycledMemory::RecycledMemory(RecycledMemory&&) noexcept = default;
RecycledMemory& RecycledMemory::operator=(RecycledMemory&&) noexcept = default;

Buffer RecycledMemory::take(std::size_t bytes) {
  Block block = store_->find(bytes);
  if (block.begin == nullptr) block = fresh_block(bytes);
  if (block.begin == nullptr) return {};
  // The store may be gone by then.
  std::shared_ptr<void> owner(block.begin, [block, home = std::weak_ptr<Store>(store_)](void*) {
    if (const auto store = home.lock()) {
      store->give_back(block);
    } else {
      block.release();
    }
  });
  return Buffer::wrap(static_cast<std::byte*>(block.begin), bytes, std::move(owner));
}

std::size_t RecycledMemory::idle_bytes() const {
  const std::scoped_lock lock(store_->mutex);
  return store_->idle_bytes;
}

}  // namespace troupe::runtime
