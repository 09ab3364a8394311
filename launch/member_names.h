#pragma once

// Which of the awaited members a process shall be that asks to be one.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// Between the answer and its coming as a member a process opens its data, for seconds or minutes,
// and nothing is heard of it; nor if it fails at that. So a name is promised only for a while, and
// two processes may once in a while prepare to be the same: the gate takes the first that comes and
// tells the other so. One thread.
class MemberNames {
 public:
  // A name is given to a second process when nobody has come for it in this time. Short, because
  // somebody mends what has failed and tries again; those that have not been promised go first, so
  // that no two processes of a run that awaits both get the same.
  static constexpr runtime::Duration kPromise = std::chrono::seconds(10);

  // `reserved`: those that somebody else starts and asks for by name. They are given to nobody who
  // wants just any, and once: that somebody sees their end.
  explicit MemberNames(std::set<std::string> reserved = {}) : reserved_(std::move(reserved)) {}

  // `wanted`: "" for any. `host`: of the process; what was promised to one of the same host is
  // given again at once, as it most likely has failed there and is tried again. `awaited`: those
  // that have not come. kUsage: there is none to give, or not the wanted one.
  runtime::Result<std::string> choose(const std::string& wanted, const std::string& host,
                                      const std::vector<std::string>& awaited,
                                      runtime::TimePoint now);

 private:
  struct Promise {
    runtime::TimePoint made;
    std::string host;
  };
  bool may_have(const std::string& name, const std::string& wanted, const std::string& host,
                runtime::TimePoint now) const;

  const std::set<std::string> reserved_;
  std::map<std::string, Promise> promised_;
};

}  // namespace troupe::launch
