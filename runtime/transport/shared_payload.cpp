#include "runtime/transport/shared_payload.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "runtime/base/descriptor.h"

namespace troupe::runtime {
namespace {

constexpr std::uint64_t kMagic = 0x31'4d'48'53'45'50'52'54;  // "TRPESHM1"
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kFirstRange = kPage + SharedSender::kSlots * sizeof(std::uint32_t);
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
// More than are given back between two payloads, so that what is free is known to be.
constexpr std::size_t kLooks = 32;

struct SegmentHead {
  std::uint64_t magic;
  std::uint64_t bytes;
  SharedToken token;
};

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

Error cannot(std::string_view what) {
  return Error{ErrorKind::kInternal,
               fmt::format("cannot {} shared memory: {}", what, std::strerror(errno))};
}

}  // namespace

class SharedMapping {
 public:
  static std::shared_ptr<SharedMapping> map(int file, std::uint64_t bytes) {
    void* begin = ::mmap(nullptr, kFirstRange + bytes, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_NORESERVE, file, 0);
    if (begin == MAP_FAILED) return nullptr;
    return std::make_shared<SharedMapping>(static_cast<std::byte*>(begin), bytes);
  }
  SharedMapping(std::byte* begin, std::uint64_t bytes) : begin_(begin), bytes_(bytes) {}
  ~SharedMapping() { ::munmap(begin_, kFirstRange + bytes_); }
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  SegmentHead& head() const { return *reinterpret_cast<SegmentHead*>(begin_); }
  std::byte* range(std::uint64_t offset) const { return begin_ + kFirstRange + offset; }
  std::uint64_t bytes() const { return bytes_; }
  // 1 while the slot's range is in use.
  std::atomic_ref<std::uint32_t> flag(std::uint32_t slot) const {
    return std::atomic_ref<std::uint32_t>(reinterpret_cast<std::uint32_t*>(begin_ + kPage)[slot]);
  }

 private:
  std::byte* const begin_;
  const std::uint64_t bytes_;
};

Result<std::unique_ptr<SharedSender>> SharedSender::create(std::size_t bytes,
                                                           const SharedToken& token) {
  Descriptor file(::memfd_create("troupe-payloads", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.is_open()) return cannot("make");
  SharedOffer offer{static_cast<std::uint32_t>(::getpid()),
                    static_cast<std::uint32_t>(file.number()), whole_pages(bytes), token};
  std::shared_ptr<SharedMapping> mapping;
  if (::ftruncate(file.number(), static_cast<off_t>(kFirstRange + offer.bytes)) == 0 &&
      ::fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    mapping = SharedMapping::map(file.number(), offer.bytes);
  }
  if (mapping == nullptr) return cannot("lay out");
  mapping->head() = {kMagic, offer.bytes, token};
  return std::unique_ptr<SharedSender>(
      new SharedSender(std::move(mapping), std::move(file), offer));
}

SharedSender::SharedSender(std::shared_ptr<SharedMapping> mapping, Descriptor file,
                           const SharedOffer& offer)
    : mapping_(std::move(mapping)), file_(std::move(file)), offer_(offer) {
  free_.emplace(0, offer.bytes);
  free_slots_.reserve(kSlots);
  for (std::uint32_t slot = kSlots; slot > 0; --slot) free_slots_.push_back(slot - 1);
}

// Neighbours that are free become one range again.
void SharedSender::give_back(const Range& range) {
  free_slots_.push_back(range.slot);
  auto here = free_.emplace(range.offset, range.bytes).first;
  const auto next = std::next(here);
  if (next != free_.end() && here->first + here->second == next->first) {
    here->second += next->second;
    free_.erase(next);
  }
  if (here == free_.begin()) return;
  const auto before = std::prev(here);
  if (before->first + before->second == here->first) {
    before->second += here->second;
    free_.erase(here);
  }
}

// Looks at so many ranges in turn, since each look may miss the caches.
void SharedSender::reclaim(std::size_t most) {
  for (std::size_t looks = std::min(most, in_use_.size()); looks > 0; --looks) {
    if (next_look_ >= in_use_.size()) next_look_ = 0;
    const Range range = in_use_[next_look_];
    if (mapping_->flag(range.slot).load(std::memory_order_acquire) != 0) {
      ++next_look_;
      continue;
    }
    give_back(range);
    in_use_[next_look_] = in_use_.back();
    in_use_.pop_back();
  }
}

// First fit. The rest of the range stays free.
std::optional<SharedSender::Range> SharedSender::find(std::uint64_t bytes) {
  if (free_slots_.empty()) return std::nullopt;
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    if (range->second < bytes) continue;
    const Range taken{free_slots_.back(), range->first, bytes};
    free_slots_.pop_back();
    const std::uint64_t left = range->second - bytes;
    free_.erase(range);
    if (left > 0) free_.emplace(taken.offset + bytes, left);
    return taken;
  }
  return std::nullopt;
}

// Fresh pages all at once cost less than one by one as they are written, and a system without
// memory says so here, where it would end the process there. False: it has none.
bool SharedSender::touch(const Range& range) {
  const std::uint64_t end = range.offset + range.bytes;
  if (end <= touched_) return true;
  const std::uint64_t begin = std::max(touched_, range.offset);
  if (::madvise(mapping_->range(begin), end - begin, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) {
    return false;
  }
  // Pages between were skipped by a larger range; they come one by one.
  touched_ = end;
  return true;
}

std::optional<SharedPlace> SharedSender::put(std::span<const std::byte> payload) {
  // At every payload and lowest offset first: the same few pages stay in the caches.
  reclaim(kLooks);
  const std::uint64_t bytes = whole_pages(payload.size());
  if (bytes == 0) return std::nullopt;
  std::optional<Range> taken = find(bytes);
  if (!taken) {
    reclaim(in_use_.size());
    taken = find(bytes);
  }
  if (!taken) return std::nullopt;
  if (!touch(*taken)) {
    give_back(*taken);
    return std::nullopt;
  }
  in_use_.push_back(*taken);
  std::memcpy(mapping_->range(taken->offset), payload.data(), payload.size());
  mapping_->flag(taken->slot).store(1, std::memory_order_release);
  return SharedPlace{taken->slot, taken->offset};
}

Result<std::unique_ptr<SharedReceiver>> SharedReceiver::open(const SharedOffer& offer) {
  const auto refused = [](std::string_view why) {
    return Error{ErrorKind::kUsage, fmt::format("the peer's shared memory is not usable: {}", why)};
  };
  if (offer.bytes == 0 || offer.bytes % kPage != 0 || offer.bytes > kMostBytes) {
    return refused("its size");
  }
  const std::string path = fmt::format("/proc/{}/fd/{}", offer.process, offer.descriptor);
  // Looked at before it is opened: opening a pipe or a device can have effects.
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return refused(std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) return refused("it is no memory");
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) return refused(std::strerror(errno));
  // A reader of a file that shrinks under it would be killed, so the seal is asked for before the
  // file is mapped. The token comes last: other processes may have the same numbers.
  const int seals = ::fcntl(file.number(), F_GET_SEALS);
  std::shared_ptr<SharedMapping> mapping;
  if (seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && ::fstat(file.number(), &facts) == 0 &&
      static_cast<std::uint64_t>(facts.st_size) == kFirstRange + offer.bytes) {
    mapping = SharedMapping::map(file.number(), offer.bytes);
  }
  if (mapping == nullptr) return refused("it can shrink, or has another size");
  const SegmentHead& head = mapping->head();
  if (head.magic != kMagic || head.bytes != offer.bytes || head.token != offer.token) {
    return refused("it is another one");
  }
  return std::unique_ptr<SharedReceiver>(new SharedReceiver(std::move(mapping)));
}

std::optional<Buffer> SharedReceiver::take(const SharedPlace& place, std::uint64_t bytes) const {
  if (place.slot >= SharedSender::kSlots || place.offset > mapping_->bytes() ||
      bytes > mapping_->bytes() - place.offset || place.offset % kPage != 0 || bytes == 0) {
    return std::nullopt;
  }
  // The mapping lives as long as the range is held; the flag goes down with the range.
  std::shared_ptr<void> owner(mapping_->range(place.offset),
                              [mapping = mapping_, slot = place.slot](void*) {
                                mapping->flag(slot).store(0, std::memory_order_release);
                              });
  return Buffer::wrap(mapping_->range(place.offset), bytes, std::move(owner));
}

}  // namespace troupe::runtime
