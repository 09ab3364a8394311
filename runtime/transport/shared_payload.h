#pragma once

// Payloads between processes of one host through memory that both see, at the price of one copy.
//
// The sender owns a segment per connection and direction: memory without a name (memfd), which
// therefore vanishes with the last process that has it mapped, however that ends. It tells its peer
// where to find it (its process and descriptor numbers, under /proc) and a random token that stands
// in the segment's first page, so that a process of another host or namespace by the same number is
// not mistaken for it.
//
//   page 0: magic, bytes, token | 4 pages: a flag per slot, 1 while its range is in use | ranges
//
// The sender's bookkeeping stands in its own memory. All that a peer can do by scribbling is to
// free ranges early, which garbles what it reads itself, or never, which leaves the sender to send
// inline. The segment is sealed against shrinking, so a receiver never faults in it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"

namespace troupe::runtime {

// Random, from the system.
using SharedToken = std::array<std::uint64_t, 2>;

// Where a peer finds a segment. bytes == 0 is no offer.
struct SharedOffer {
  std::uint32_t process = 0;
  std::uint32_t descriptor = 0;
  std::uint64_t bytes = 0;  // of all ranges; a multiple of the page
  SharedToken token{};
};

// One range in use.
struct SharedPlace {
  std::uint32_t slot = 0;
  std::uint64_t offset = 0;  // from the first range's begin
};

// A mapping of a whole segment, of either end. Unmapped with the last user.
class SharedMapping;

// The writing end. One thread.
class SharedSender {
 public:
  // At most so many ranges are in use at a time.
  static constexpr std::uint32_t kSlots = 4096;

  // Memory is touched as it is used, not here. `bytes` is rounded up to pages. Errors (kInternal):
  // the system gives no such memory; payloads then travel inline.
  static Result<std::unique_ptr<SharedSender>> create(std::size_t bytes, const SharedToken& token);
  SharedSender(const SharedSender&) = delete;
  SharedSender& operator=(const SharedSender&) = delete;

  const SharedOffer& offer() const { return offer_; }

  // Copies the payload into a free range. Nothing when there is none large enough, or the system
  // has no memory for it.
  std::optional<SharedPlace> put(std::span<const std::byte> payload);

 private:
  struct Range {
    std::uint32_t slot;
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  SharedSender(std::shared_ptr<SharedMapping> mapping, Descriptor file, const SharedOffer& offer);
  void reclaim(std::size_t most);
  std::optional<Range> find(std::uint64_t bytes);
  bool touch(const Range& range);
  void give_back(const Range& range);

  const std::shared_ptr<SharedMapping> mapping_;
  const Descriptor file_;
  const SharedOffer offer_;
  std::map<std::uint64_t, std::uint64_t> free_;  // offset -> bytes, neighbours merged
  std::vector<std::uint32_t> free_slots_;
  std::vector<Range> in_use_;
  std::size_t next_look_ = 0;  // into in_use_
  std::uint64_t touched_ = 0;  // ranges end here at most, ever
};

// The reading end. Any thread.
class SharedReceiver {
 public:
  // Errors (kUsage): the segment cannot be reached from here, or is not what it should be.
  static Result<std::unique_ptr<SharedReceiver>> open(const SharedOffer& offer);

  // A Buffer in the segment, which may outlive this object and the connection; the sender gets the
  // range back when its last copy goes. Nothing when the place does not lie in the segment.
  std::optional<Buffer> take(const SharedPlace& place, std::uint64_t bytes) const;

 private:
  explicit SharedReceiver(std::shared_ptr<SharedMapping> mapping) : mapping_(std::move(mapping)) {}

  const std::shared_ptr<SharedMapping> mapping_;
};

}  // namespace troupe::runtime
