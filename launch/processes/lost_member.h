#pragma once

// A supervisor tells the head of a member that has ended when it should not have. So the head
// learns of one that has never reached it, too.

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "launch/processes/child_process.h"
#include "launch/processes/parent_line.h"
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

// Those that this process's own parent has told of.
class LostMembers {
 public:
  // `listens`: the parent tells of any; it does so on the line it gives its children.
  explicit LostMembers(bool listens);

  // Those that are new since the last call. Any thread.
  std::vector<LostMember> take();

 private:
  std::mutex mutex_;
  std::vector<LostMember> members_;
  std::optional<ParentLine> line_;  // the last to begin and the first to end
};

}  // namespace troupe::launch
