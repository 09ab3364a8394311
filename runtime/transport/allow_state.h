#pragma once

// Whom a listener lets in, as time goes by. A token admits whoever comes while it is good; once in,
// a node belongs to the run, and a connection that breaks later is made again.

#include <chrono>
#include <map>
#include <span>
#include <string>

#include "runtime/transport/keys.h"

namespace troupe::runtime {

enum class Admission : std::uint8_t { kRefused, kAdmitted, kExpired };

// Of one run; nothing of it is written anywhere. One thread.
class AllowState {
 public:
  // Whether `key` may connect now. It is
  //   - kAdmitted while it stands in the list and has not expired;
  //   - kExpired after it has, in the list or cleared away from it, if it was let in before. All
  //   who
  //     have a token have the same key, so whoever connects so must be known otherwise.
  // A key that is taken off the list before its time is refused from then on, and what it was let
  // in for is forgotten. That it was taken off is seen when somebody connects: where nobody did
  // until it would have expired, it cannot be told from one that was cleared away.
  Admission admits(const std::string& key, std::span<const AllowedKey> listed,
                   std::chrono::sys_seconds now);

 private:
  void compare_with(std::span<const AllowedKey> listed, std::chrono::sys_seconds now);

  std::map<std::string, std::chrono::sys_seconds> let_in_;  // keys that expire, until when
};

}  // namespace troupe::runtime
