#pragma once

// A supervisor tells the head of a member that has ended when it should not have. So the head
// learns of one that has never reached it, too.

#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "launch/processes/child_process.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"

namespace troupe::launch {

struct LostMember {
  std::string name;  // "member.0"
  ChildEnd end;

  // Its kind is the one that the member itself has ended with; kLostPeers when it could not say.
  runtime::Error error() const;
};

// As one line, and back; none: not such a line.
std::string print(const LostMember& member);
std::optional<LostMember> parse_lost_member(const std::string& line);

// Those that this process's own parent has told of (ChildProcess::tell).
class LostMembers {
 public:
  // Takes over `line`, kParentLineDescriptor of a child, and listens there on a thread of its own
  // until the line ends or this object does. A descriptor that is none ends at once.
  explicit LostMembers(int line);
  ~LostMembers();
  LostMembers(const LostMembers&) = delete;
  LostMembers& operator=(const LostMembers&) = delete;

  // Those that are new since the last call. Any thread.
  std::vector<LostMember> take();

 private:
  void listen();

  const runtime::Descriptor line_;
  const runtime::Descriptor stop_;  // an eventfd
  std::mutex mutex_;
  std::vector<LostMember> members_;
  std::thread thread_;
};

}  // namespace troupe::launch
