#pragma once

// The parts of UcxFabric and UcxStream, for these two alone.

#include <algorithm>
#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/transport/ucx_fabric.h"
#include "runtime/transport/ucx_library.h"

namespace troupe::runtime {

inline constexpr unsigned kUcxMessageId = 1;
inline constexpr std::size_t kUcxWord = sizeof(std::uint64_t);
// A message's header: the token, its number, and the count of its frames. 0 frames stand for two,
// of which the first one follows in the header and the second one is the data. Other frames are the
// data, behind their sizes, each from a multiple of eight bytes on.
inline constexpr std::size_t kUcxNumberAt = 2 * kUcxWord, kUcxFramesAt = 3 * kUcxWord,
                             kUcxHeaderBytes = 4 * kUcxWord;
// Set in the number of what goes to the dialer: both ends may be in one process.
inline constexpr std::uint64_t kUcxToDialer = std::uint64_t{1} << 63;
// Smaller messages are copied into one piece anyway.
inline constexpr std::size_t kUcxCopyBytes = 1024;
// More than one payload can have.
inline constexpr std::uint64_t kUcxMostData = std::uint64_t{17} << 30;
// More messages than a peer has under way behind a large one.
inline constexpr std::uint64_t kUcxMostAhead = std::uint64_t{1} << 16;
// Smaller data are no use to RecycledMemory, which hands out pages.
inline constexpr std::size_t kUcxPagesFrom = std::size_t{64} << 10;
// How often the library is looked at while it has work that does not move.
inline constexpr Duration kUcxPause = std::chrono::milliseconds(1);
// How long an end that has sent everything waits for the other to go first: one that goes while it
// is sent something may take back what it has sent itself.
inline constexpr Duration kUcxGrace = std::chrono::milliseconds(100);
// An endless flood leaves the wire its other work.
inline constexpr int kUcxManyRounds = 1000;

inline std::size_t ucx_padded(std::size_t bytes) {
  return (bytes + kUcxWord - 1) / kUcxWord * kUcxWord;
}

// One direction of a connection, as its receiver knows it.
struct UcxStreamKey {
  SharedToken token{};
  bool to_dialer = false;
  auto operator<=>(const UcxStreamKey&) const = default;
};

struct UcxEndpoint {
  ucp_ep_h handle = nullptr;
  // Whether the library notices a dead peer, and can give up what is under way to it.
  bool tells_failure = true;
  ucs_status_t failure = UCS_OK;
  std::size_t unsent = 0;  // messages that the library has not done with
};

// The library uses this until it says that it is done.
struct UcxSending {
  std::list<UcxSending>* home = nullptr;
  std::list<UcxSending>::iterator self;
  std::shared_ptr<UcxEndpoint> to;
  const UcxLibrary* library = nullptr;
  std::array<std::byte, kUcxHeaderBytes + UcxStream::kMostPrelude> header{};
  Buffer data;
};

struct UcxParting {
  std::shared_ptr<UcxEndpoint> from;
  TimePoint until;
  bool has_sent = false;  // all messages, and then it is flushed
  void* flush = nullptr;  // null: it is done
};

struct UcxClosing {
  std::shared_ptr<UcxEndpoint> endpoint;
  void* request = nullptr;
};

// A message that has not been handed on.
struct UcxSlot {
  bool is_whole = false;
  std::vector<Buffer> frames;
};

struct UcxStream::Impl {
  UcxFabric::Impl& fabric;
  const UcxStreamKey key;
  RecycledMemory& memory;
  std::shared_ptr<UcxEndpoint> endpoint;
  std::optional<TimePoint> parts_by;
  std::uint64_t sent = 0;
  std::uint64_t next = 0;  // to be handed on
  std::map<std::uint64_t, UcxSlot> slots;
  std::string fault;
  bool is_over = false;  // nothing more is to come

  bool is_next_whole() const {
    return !slots.empty() && slots.begin()->first == next && slots.begin()->second.is_whole;
  }
  std::string failure() const;
};

// A payload on its way in.
struct UcxReceiving {
  std::list<UcxReceiving>* home = nullptr;
  std::list<UcxReceiving>::iterator self;
  UcxFabric::Impl* fabric = nullptr;
  UcxStreamKey key;
  std::uint64_t number = 0;
  std::vector<Buffer> frames;  // of UcxSlot; empty: `data` holds them all
  Buffer data;
  std::uint64_t count = 0;
};

struct UcxFabric::Impl {
  explicit Impl(const Clock& time) : clock(time) {}
  ~Impl();

  void receive(std::span<const std::byte> header, void* data, std::size_t bytes,
               bool is_rendezvous);
  void take_data(UcxReceiving& receiving, const std::byte* data);
  void await_data(UcxReceiving receiving, void* descriptor);
  void settle(UcxReceiving& receiving, ucs_status_t status);
  void close(std::shared_ptr<UcxEndpoint> endpoint);
  void part(std::shared_ptr<UcxEndpoint> endpoint, TimePoint until);
  void go_on_parting(UcxParting& one, TimePoint now);
  void reap();
  UcxStream::Impl* find(const UcxStreamKey& key) {
    const auto found = streams.find(key);
    return found == streams.end() ? nullptr : found->second;
  }

  const Clock& clock;
  NetworkRange network;
  const UcxLibrary* library = nullptr;
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  int descriptor = -1;
  UcxOffer offer;
  std::map<UcxStreamKey, UcxStream::Impl*> streams;
  std::list<UcxSending> sending;
  std::list<UcxReceiving> receiving;
  std::list<UcxParting> parting;
  std::list<UcxClosing> closing;
};

}  // namespace troupe::runtime
