#pragma once

// Data between processes over UCX: shared memory, InfiniBand, or what else its variables (UCX_TLS,
// UCX_NET_DEVICES) let it use. A connection of a wire has a stream of messages through it, and
// stays on ZeroMQ with all else. Nothing is encrypted.
//
// A message is one active message of UCX. Its header names the connection by the secret token and
// numbers it, since UCX keeps no order between small and large ones. A payload of some size is sent
// from where it is and written to where it stays.
//
// The wire's thread, but for open(), which comes before. Everything happens within progress().

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/base/network_range.h"
#include "runtime/transport/shared_payload.h"
#include "runtime/transport/zmq_memory.h"

namespace troupe::runtime {

// Where a peer finds a fabric. An empty address is no offer.
struct UcxOffer {
  static constexpr std::size_t kMostBytes = std::size_t{64} << 10;

  std::string version;  // of the library, whose addresses have no mark of it
  std::string address;
  Hash128 check{};  // of the address, which the library reads without looking
};

class UcxStream;

class UcxFabric {
 public:
  struct Impl;
  // The clock outlives the fabric.
  explicit UcxFabric(const Clock& clock);
  // Gives up what streams still have to send.
  ~UcxFabric();
  UcxFabric(const UcxFabric&) = delete;
  UcxFabric& operator=(const UcxFabric&) = delete;

  // Before it no connection uses it, and the library is not even loaded. Peers beyond this machine
  // must lie in the network. Errors (kUsage): there is no library, or it finds nothing to work
  // with.
  Result<void> open(const NetworkRange& network);
  bool is_open() const;
  const UcxOffer& offer() const;

  // Whether data may go to that numeric host; loopback: it is this machine.
  bool may_reach(const std::string& host, bool loopback) const;

  // The stream of a connection, from when messages for it may come; is_dialer: of this end. The
  // token is not in use for that end. The memory outlives it. CHECKs is_open().
  std::unique_ptr<UcxStream> stream(const SharedToken& token, bool is_dialer,
                                    RecycledMemory& memory);

  // Whether anything has happened.
  bool progress();
  // To be asked right before a wait.
  struct Wait {
    int descriptor = -1;                 // -1: it is not open
    Duration at_most = Duration::max();  // zero: there is something to do already
  };
  Wait before_wait();
  // When progress() is due though nothing comes; max(): never.
  TimePoint next_deadline() const;
  // Waits until streams that have parted have sent everything, or until their time is over.
  void drain();

 private:
  const std::unique_ptr<Impl> impl_;
};

// Messages of Buffers, in order. The fabric outlives it.
class UcxStream {
 public:
  struct Impl;
  // A message of a payload with a frame of at most so many bytes before it is not copied.
  static constexpr std::size_t kMostPrelude = 64;
  static constexpr std::size_t kMostFrames = 1100;

  // Messages under way are lost, unless it has parted.
  ~UcxStream();
  UcxStream(const UcxStream&) = delete;
  UcxStream& operator=(const UcxStream&) = delete;

  // Errors (kLostPeers): the offer is damaged, of another release of UCX, or leads nowhere.
  Result<void> connect(const UcxOffer& peer);
  bool is_connected() const;

  // CHECKs that it is connected and that there are 1 to kMostFrames.
  void send(std::span<const Buffer> frames);
  // Nothing is sent after it. Messages sent before may leave until then, though the stream goes.
  void part(TimePoint until);

  // The next message; false: it has not come as a whole.
  bool receive(std::vector<Buffer>& frames);
  // Nothing more is to come, and a failure is no news.
  void end_news();
  // Why nothing comes any more, once receive() has found nothing; "": it may.
  std::string failure() const;

 private:
  friend class UcxFabric;
  explicit UcxStream(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::runtime
