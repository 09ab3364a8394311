#pragma once

// Reads from a page's server: whole answers, and the stream of a run.

#include <functional>
#include <string>

#include "runtime/base/error.h"
#include "telemetry/page/page_limits.h"
#include "telemetry/watch/event_reader.h"
#include "telemetry/watch/page_address.h"

namespace troupe::telemetry {

// One thread.
class PageClient {
 public:
  // Asked several times a second: whether to give up.
  using Stop = std::function<bool()>;

  // `stop` empty: never. `limits`: its own, not the server's.
  explicit PageClient(PageAddress address, Stop stop = {}, const PageLimits& limits = {});

  // The body of a good answer, on a connection of its own. kLostPeers: nobody answers there in
  // time, or stop() says so. kUsage: the server refuses; the message has its words.
  runtime::Result<std::string> get(const std::string& path);

  // Hands on events as they come, until the stream ends (no error), breaks, or stop() says so
  // (kLostPeers, kUsage as above). Called again, it goes on where it was if the server still knows.
  runtime::Result<void> follow(const std::string& path, const EventReader::Take& take);

 private:
  PageAddress address_;
  Stop stop_;
  PageLimits limits_;
  std::string last_id_;
};

}  // namespace troupe::telemetry
