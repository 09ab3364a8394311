#pragma once

// Several members on this machine, each a process below this one: `troupe join --workers N`.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace troupe::launch {

struct MemberGroupRequest {
  // Verb and arguments that make this program each of the members, but for what follows.
  std::vector<std::string> words;
  // Further ones, for each.
  std::vector<std::vector<std::string>> own_words;
  std::string token;  // each finds it on its standard input; "": none
};

// A member that fails while others run is started anew after some seconds, up to three times for
// all of them together. Returns when all have ended: the exit code of the first that has failed
// last, else 0. The first signal to end asks all to leave the run, the second kills them; with this
// process they end anyway. Their lines go to standard error behind their numbers. Must be called
// before other threads are started. kInternal: one cannot be started.
runtime::Result<int> run_member_group(const MemberGroupRequest& request);

}  // namespace troupe::launch
