#pragma once

// Hosts as network namespaces on one bridge, each with a cable that can be slow or cut.

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace troupe {

class Network {
 public:
  // Host 0 has the bridge. When this system refuses, refusal() says why and nothing is left.
  explicit Network(int hosts);
  // Removes the namespaces, and with them all cables.
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const std::string& refusal() const { return refusal_; }
  // "10.77.0.1" of host 0.
  static std::string address(int host);
  // The words, to be run on the host.
  std::vector<std::string> on(int host, const std::vector<std::string>& words) const;
  // The same without sight of other hosts' processes, as which memory could be shared that no cable
  // carries. What starts it passes no signal on but its own end.
  std::vector<std::string> apart_on(int host, const std::vector<std::string>& words) const;
  // Bytes that a host other than 0 has sent over its cable.
  std::uint64_t sent_by(int host) const;
  // For the cable of a host other than 0, in both directions. False: the system cannot limit it.
  bool limit_rate(int host, const std::string& rate);
  bool cut_cable(int host);
  bool mend_cable(int host);
  // Nothing comes from one to the other any more, hosts other than 0; host 0 reaches both.
  bool part(int one, int other);
  // Nobody can open a connection to a host other than 0 any more, as behind a firewall; it opens
  // what it likes.
  bool shut_in(int host);

 private:
  std::string name(int host) const;
  // Remembers the first command that failed.
  bool call(const std::vector<std::string>& words);

  int hosts_ = 0;
  std::string refusal_;
};

}  // namespace troupe
