#pragma once

// Members that cannot reach each other cannot stand in one ring, so one of the two has to go. Most
// often one of them is dead, and the head is about to notice that itself. So a quarrel waits for a
// grace time, a longer one where only one of the two complains and the other may be dead.
//
// A pure state machine. One thread.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

class Quarrels {
 public:
  // One member says that it has lost another.
  struct Quarrel {
    std::uint32_t from = 0, about = 0;
    runtime::Error error;
    runtime::TimePoint since{0};
  };
  struct Verdict {
    Quarrel quarrel;
    std::uint32_t leaves = 0;  // the member that has to go
  };

  // `parting`: the grace when both complain, or one of them still learns; `accused`: the other one.
  Quarrels(runtime::Duration parting, runtime::Duration accused)
      : parting_(parting), accused_(accused) {}

  void add(Quarrel quarrel) { quarrels_.push_back(std::move(quarrel)); }
  // The first quarrel whose grace is over, if there is one; those with members that are lost are
  // forgotten. The member leaves that still learns; of equals the one that more others complain of
  // or to, and of equals the later one. A member that learns has no say in other quarrels: however
  // many of these cannot reach a member, the others can.
  std::optional<Verdict> settle(const std::function<bool(std::uint32_t)>& is_lost,
                                const std::function<bool(std::uint32_t)>& learns,
                                runtime::TimePoint now);

 private:
  runtime::Duration parting_, accused_;
  std::vector<Quarrel> quarrels_;
};

}  // namespace troupe::pipeline
