#pragma once

// Says in the log whom a run waits for: for the first node of its pools, before anybody trains, and
// for the last ones in the end. The Provisioner's; one thread.

#include <optional>
#include <string>
#include <vector>

#include "actors/pool_node.h"
#include "runtime/actor.h"
#include "runtime/base/clock.h"

namespace troupe::actors {

class PoolWaits {
 public:
  // Nobody trains. `why`: no member has come. Said at once where that is news and no node is on its
  // way, since the log tells of those, and every minute.
  void tell_first(runtime::Context& context, const std::string& why, bool is_any_on_its_way);
  // The run is over. Said when nodes are left ten seconds after it, and every ten seconds; `left`:
  // those that are not gone, `until`: when they are given up.
  void tell_last(runtime::Context& context, const std::vector<PoolNode>& left,
                 runtime::TimePoint until);

 private:
  std::string told_;  // by tell_first(), last
  std::optional<runtime::TimePoint> first_at_, last_at_;
};

}  // namespace troupe::actors
