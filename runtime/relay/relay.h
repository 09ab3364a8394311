#pragma once

// Passes bytes on between members of which neither can be dialed. Each has opened a connection to
// the relay, over which it hears who calls; then both open another one, and what comes over one
// goes out over the other. What it passes on it does not look at: members encrypt what they say to
// each other, and the relay has none of their keys.

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/relay/relay_frames.h"

namespace troupe::runtime {

struct RelayOptions {
  // Where it listens: a number, IPv6 with or without brackets; port 0: any.
  std::string host;
  std::uint16_t port = 0;
  // How long an unknown peer may take to say who it is, and a client that is called to come.
  Duration answer_within = std::chrono::seconds(10);
  // How long a client may be silent before it does not attend any more.
  Duration silent_within = std::chrono::seconds(20);
  // Connections that have not said who they are; the oldest makes room for one more.
  std::size_t most_unidentified = 64;
  // Calls of one client, waiting and taken.
  long most_calls = 256;
  Log log = Log::silent();
};

// Has a thread of its own. An unknown peer, and whatever does not begin with a frame of
// relay_frames.h and the token of a client, is cut off.
class Relay {
 public:
  // Errors (kUsage): it cannot listen there.
  static Result<std::unique_ptr<Relay>> open(const RelayOptions& options);
  // Ends every connection.
  ~Relay();

  std::uint16_t port() const;
  // Any thread. From now on that client is known by the token, and by no earlier one.
  void admit(std::uint32_t client, const RelayToken& token);

 private:
  struct Impl;
  explicit Relay(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::runtime
