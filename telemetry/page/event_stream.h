#pragma once

// What one follower of a run is sent next, as server-sent events (WHATWG HTML, section 9.2).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "telemetry/history.h"

namespace troupe::telemetry {

class EventStream {
 public:
  // `start` tells this server's life from another's, whose versions mean nothing here.
  // `last_event_id`: of the event that the client took last, from whatever life; "" for none.
  EventStream(std::uint64_t start, std::string_view last_event_id);

  struct Event {
    std::string head;                         // all up to the JSON
    std::shared_ptr<const std::string> json;  // one line, which others share
  };
  // Behind an event's JSON.
  static constexpr std::string_view kEnd = "\n\n";
  // Keeps a connection that has nothing to say alive.
  static constexpr std::string_view kComment = ":\n\n";

  // All that is new since the event before; nothing: nothing is. The first one always comes, so
  // that a client which has come back knows that it is heard.
  std::optional<Event> next(const History& history);

 private:
  std::uint64_t start_;
  bool begun_ = false;
  std::optional<std::uint64_t> version_;  // the client's
};

}  // namespace troupe::telemetry
