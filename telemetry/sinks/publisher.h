#pragma once

// Tells everybody on this machine who subscribes what a run tells, as it comes: a PUB socket of
// ZeroMQ. docs/watching.md describes the messages.

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace troupe::telemetry {

struct PublisherOptions {
  // "tcp://127.0.0.1:PORT", with "*" or 0 for any free port, "tcp://[::1]:PORT",
  // "tcp://localhost:PORT" or "ipc://PATH". Nothing is encrypted, so other hosts are not served.
  // Only this user, and the superuser, can connect to a path.
  std::string address;
  // How many messages may wait for one subscriber. A slower one loses those that find no room, and
  // holds up nobody.
  int waiting = 1000;
};

// One thread at a time. Never throws, never waits.
class Publisher {
 public:
  // Whether this can be an address at all, on any machine. kUsage as open() has it.
  static runtime::Result<void> check_address(const std::string& address);

  // Asks no resolver. kUsage, saying what to do: this is no address, leads beyond this machine, is
  // in use or not allowed, or the path is that of a file. kInternal: no descriptors are left.
  static runtime::Result<std::unique_ptr<Publisher>> open(const PublisherOptions& options);
  // Gives up what still waits for subscribers.
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // One message of two frames. Subscribers choose by the beginning of the topic.
  void send(std::string_view topic, std::string_view body);

  // With the port that was found, as a subscriber connects to it.
  const std::string& address() const { return address_; }

 private:
  struct Sockets;
  Publisher();

  std::unique_ptr<Sockets> sockets_;
  std::string address_;
};

}  // namespace troupe::telemetry
