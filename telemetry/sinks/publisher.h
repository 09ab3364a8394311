#pragma once

// What a run tells, as it tells it, to everybody on this machine who subscribes: a PUB socket of
// ZeroMQ. docs/watching.md describes the messages.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace troupe::telemetry {

struct PublisherOptions {
  // "tcp://127.0.0.1:PORT", with "*" or 0 for any free port, "tcp://[::1]:PORT",
  // "tcp://localhost:PORT" or "ipc://PATH". Nothing is encrypted, so other hosts are not served.
  // Of the latter only this user can connect, and the superuser.
  std::string address;
  // Messages that may wait for one subscriber. One that is slower loses what comes besides, and
  // holds up nobody.
  int waiting = 1000;
};

// One thread at a time. Never throws, never waits.
class Publisher {
 public:
  // Whether an address can be one at all, on any machine: kUsage, as of open().
  static runtime::Result<void> check_address(const std::string& address);

  // kUsage, saying what to do: the address cannot be meant, leads beyond this machine, is in use or
  // not allowed, or the path is that of a file. Asks no resolver. kInternal: no descriptors left.
  static runtime::Result<std::unique_ptr<Publisher>> open(const PublisherOptions& options);
  // What still waits for subscribers is given up.
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // One message of two frames. Subscribers choose by the beginning of the topic.
  void send(std::string_view topic, std::string_view body);

  // With the port that was found, as a subscriber connects to it.
  const std::string& address() const { return address_; }
  // Messages known to have been lost by a subscriber. Of a subscriber that stands still ZeroMQ
  // tells only the first, so this says that there was loss rather than how much; lines of kind
  // "step" are numbered.
  std::uint64_t losses() const { return losses_; }

 private:
  struct Sockets;
  explicit Publisher(std::unique_ptr<Sockets> sockets);
  void push(std::string_view frame, int flags);

  std::unique_ptr<Sockets> sockets_;
  std::string address_;
  std::uint64_t losses_ = 0;
};

}  // namespace troupe::telemetry
