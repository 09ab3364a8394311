#pragma once

// What one follower is sent next of the runs it follows, as server-sent events (WHATWG HTML,
// section 9.2). All runs take one connection, since a browser keeps few of them to one host.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/run_source.h"

namespace troupe::telemetry {

class EventStream {
 public:
  // `start` tells this server's life from another's, whose versions mean nothing here.
  // `last_event_id`: of the event that the client took last, from whatever life; "" for none.
  // `runs`: numbers of those that are followed, at least one.
  EventStream(std::uint64_t start, std::string_view last_event_id, std::vector<std::size_t> runs);

  struct Event {
    std::string head;                         // all up to the JSON
    std::shared_ptr<const std::string> json;  // one line, which others share
  };
  // Behind an event's JSON.
  static constexpr std::string_view kEnd = "\n\n";
  // Keeps a connection that has nothing to say alive.
  static constexpr std::string_view kComment = ":\n\n";

  // All that is new of one of the runs, which take turns, since the event before; nothing: nothing
  // is. The first event of a run always comes, so that a client which has come back knows that it
  // is heard. Where more than one run is followed, the event's name tells its number: "update 2".
  std::optional<Event> next(const std::vector<RunSource>& sources);
  std::size_t runs() const { return runs_.size(); }

 private:
  struct Followed {
    std::size_t run = 0;
    bool begun = false;
    std::optional<std::uint64_t> version;  // the client's
  };

  std::string id() const;

  std::uint64_t start_;
  std::vector<Followed> runs_;
  std::size_t turn_ = 0;
};

}  // namespace troupe::telemetry
