#pragma once

// What nodes.json of a run says when all its processes of this machine have ended. The head keeps
// the file while it lives; this puts right what it could not see any more.

#include <sys/types.h>

#include <string>
#include <vector>

#include "launch/processes/child_process.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// A process of the run that its supervisor has seen end.
struct EndedProcess {
  std::string name;  // "head", "member.0"
  pid_t pid = 0;
  ChildEnd end;
};

// Leaves no node of the file running. One that was killed is dead of it, whatever was known of it;
// of all others the head knows better, if it has seen their end. Nodes of other hosts that the head
// has not outlived are lost with it.
//
// Nothing happens when there is no file, or one that another head wrote. kData: it cannot be
// written.
runtime::Result<void> settle_nodes(const std::string& path, const std::vector<EndedProcess>& ended);

}  // namespace troupe::launch
