#pragma once

// Reads what a page's server tells: whole answers, and the stream of a run.

#include <chrono>
#include <functional>
#include <string>

#include "runtime/base/error.h"
#include "telemetry/watch/event_reader.h"
#include "telemetry/watch/page_address.h"

namespace troupe::telemetry {

class PageClient {
 public:
  // Asked several times a second: whether to give up.
  using Stop = std::function<bool()>;

  // One thread. `stop` empty: never.
  explicit PageClient(PageAddress address, Stop stop = {});

  // The body of a good answer, read on a connection of its own. kLostPeers: nobody answers there,
  // or not within `patience`, or stop() says so; kUsage: refused, with the server's words.
  runtime::Result<std::string> get(const std::string& path,
                                   std::chrono::milliseconds patience = std::chrono::seconds(30));

  // Events as they come, until the stream ends (no error), breaks, says nothing for `patience` or
  // stop() says so (kLostPeers, kUsage as above). Called again, it goes on where it was if the
  // server still knows.
  runtime::Result<void> follow(const std::string& path, const EventReader::Take& take,
                               std::chrono::milliseconds patience = std::chrono::seconds(40));

 private:
  struct Exchange;
  std::string request(const std::string& path, const std::string& fields) const;

  PageAddress address_;
  Stop stop_;
  std::string last_id_;
};

}  // namespace troupe::telemetry
