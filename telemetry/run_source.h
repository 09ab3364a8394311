#pragma once

// A run as the page's server hands it out.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/error.h"
#include "telemetry/history.h"

namespace troupe::telemetry {

struct RunSource {
  using Answer = std::function<void(runtime::Result<std::string>)>;

  std::string name;  // until the history tells one
  std::string folder;
  // Whether it goes on now. Called on the server's thread. Empty: it does not.
  std::function<bool()> live;
  std::shared_ptr<const History> history;  // always there
  // JSON of the showers of a step. Called on the server's thread, so a file at most. Empty: there
  // are none.
  std::function<runtime::Result<std::string>(std::uint64_t step)> showers;
  // What is asked of a live run, answered once, sooner or later and by any thread, also after the
  // server has gone. Called on the server's thread, and again only when it has answered or
  // PageLimits::idle_time has passed. Empty: there is none.
  std::function<void(Answer)> trace, waits;
};

}  // namespace troupe::telemetry
