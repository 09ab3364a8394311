#pragma once

// What a supervisor tells the head of a member that has ended when it should not have: so the head
// learns of one that has never reached it.

#include <optional>
#include <string>

#include "launch/child_process.h"
#include "runtime/base/error.h"

namespace troupe::launch {

struct LostMember {
  std::string name;  // "member.0"
  ChildEnd end;

  // Of the kind that the member itself has ended with; kLostPeers when it could not say.
  runtime::Error error() const;
};

// As one line, and back; none: not such a line.
std::string print(const LostMember& member);
std::optional<LostMember> parse_lost_member(const std::string& line);

}  // namespace troupe::launch
