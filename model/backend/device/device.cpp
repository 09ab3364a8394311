#include "model/backend/device/device.h"

#include <algorithm>
#include <utility>

namespace troupe::model::device {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{4} << 20;
constexpr std::size_t kAlignment = 64;

}  // namespace

void Device::write(const void* from, void* to, std::size_t bytes) {
  const std::scoped_lock lock(staging_mutex_);
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  while (bytes > 0) {
    if (staged_ + kAlignment > kBlockBytes) begin_next_block();
    Block& block = blocks_[block_];
    if (block.first == nullptr) block.first = allocate_pinned(kBlockBytes);
    const std::size_t part = std::min(bytes, kBlockBytes - staged_);
    std::memcpy(block.first + staged_, source, part);
    write_pinned(Queue::kMain, block.first + staged_, target, part);
    staged_ += (part + kAlignment - 1) / kAlignment * kAlignment;
    source += part;
    target += part;
    bytes -= part;
  }
}

void Device::begin_next_block() {
  blocks_[block_].mark = mark();
  block_ = (block_ + 1) % blocks_.size();
  staged_ = 0;
  if (void* const mark = std::exchange(blocks_[block_].mark, nullptr)) wait_for(mark);
}

void Device::end_staging() {
  if (staged_ > 0) wait_for(mark());
  for (Block& block : blocks_) {
    if (block.mark != nullptr) wait_for(block.mark);
    if (block.first != nullptr) free_pinned(block.first);
    block = {};
  }
}

std::shared_ptr<std::byte> Device::allocate_host(std::size_t bytes) {
  return {allocate_pinned(bytes),
          [self = shared_from_this()](std::byte* first) { self->free_pinned(first); }};
}

}  // namespace troupe::model::device
