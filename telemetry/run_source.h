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
  using Question = std::function<void(Answer)>;

  std::string name;  // until the history tells one
  std::string folder;
  // Whether the run goes on now. Called on the server's thread. Empty: it does not.
  std::function<bool()> live;
  std::shared_ptr<const History> history;  // always there
  // The JSON of a step's showers. Called on the server's thread, so it reads a file at most. Empty:
  // there are none.
  std::function<runtime::Result<std::string>(std::uint64_t step)> showers;
  // Questions to a live run. Each is answered once, sooner or later and by any thread, maybe after
  // the server has gone. They are called on the server's thread, and again only after an answer or
  // when PageLimits::idle_time has passed. Empty: the run cannot be asked.
  Question trace, waits;
};

}  // namespace troupe::telemetry
