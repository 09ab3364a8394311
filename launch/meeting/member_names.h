#pragma once

// The choice of the awaited member that a process becomes when it asks to be one.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/transport/packets.h"

namespace troupe::launch {

// A process that was given a name opens its data for seconds or minutes before it comes as a
// member. Nothing is heard of it meanwhile, nor if it fails. So a name is promised only for a
// while, and two processes may prepare to be the same member: the gate takes the first that comes
// and tells the other so. One thread.
class MemberNames {
 public:
  // A name is given to a second process when nobody has come for it in this time. It is short,
  // because somebody mends a failure and tries again. Names that have not been promised go first,
  // so that two processes of a run that awaits both do not get the same.
  static constexpr runtime::Duration kPromise = std::chrono::seconds(10);

  // `reserved`: names of processes that a supervisor starts and that ask for them. Each is given
  // once, and to no process that wants just any: the supervisor sees the end of its own.
  explicit MemberNames(std::set<std::string> reserved = {}) : reserved_(std::move(reserved)) {}

  // `wanted`: "" for any. `host`: of the process; what was promised to one of the same host is
  // given again at once, as it most likely has failed there and is tried again. `awaited`: those
  // that have not come, and that may be given now. None: there is none to give, or not the wanted
  // one.
  std::optional<std::string> choose(const std::string& wanted, const std::string& host,
                                    const std::vector<std::string>& awaited,
                                    runtime::TimePoint now);

  // Why choose() gave none of `now`. `awaited`: all that have not come. `gives_again`: whether
  // others will be there when a process has left. NotNow: one that suits the process is promised to
  // another, or not to be given before others, or may be there later. kUsage: there is none left
  // for it.
  runtime::Result<runtime::NotNow> why_none(const std::string& wanted,
                                            const std::vector<std::string>& now,
                                            const std::vector<std::string>& awaited,
                                            bool gives_again) const;

 private:
  struct Promise {
    runtime::TimePoint made;
    std::string host;
  };
  // Those of the names that nobody has reserved.
  std::vector<std::string> open_of(const std::vector<std::string>& names) const;
  bool may_have(const std::string& name, const std::string& wanted, const std::string& host,
                runtime::TimePoint now) const;

  const std::set<std::string> reserved_;
  std::map<std::string, Promise> promised_;
};

}  // namespace troupe::launch
