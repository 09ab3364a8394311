#include <cstdint>
#include <cstring>

#include "model/backend.h"
#include "runtime/base/buffer.h"

namespace troupe::model {
namespace {

class HostMemory final : public Memory {
 public:
  bool is_of_host() const override { return true; }
  MemorySize size() const override { return {UINT64_MAX, UINT64_MAX}; }
  std::shared_ptr<std::byte> allocate(std::size_t bytes) override {
    auto buffer = std::make_shared<runtime::Buffer>(runtime::Buffer::zeroed(bytes));
    std::byte* const first = buffer->mutable_data();
    return {std::move(buffer), first};
  }
  void write(const void* from, void* to, std::size_t bytes) override { move(from, to, bytes); }
  void read(const void* from, void* to, std::size_t bytes) override { move(from, to, bytes); }
  void copy(const void* from, void* to, std::size_t bytes) override { move(from, to, bytes); }

 private:
  static void move(const void* from, void* to, std::size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
};

}  // namespace

Memory& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace troupe::model
