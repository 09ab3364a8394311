#pragma once

// What a follower of runs is sent next, as server-sent events (WHATWG HTML, section 9.2). Several
// runs share one connection, since a browser opens only a few to one host.

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
  // `start` tells this server from one that ran before, whose versions mean nothing here.
  // `last_event_id`: the id of the last event that the client took from any server; "": none.
  // `runs`: the numbers of the runs to follow, at least one.
  EventStream(std::uint64_t start, std::string_view last_event_id, std::vector<std::size_t> runs);

  struct Event {
    std::string head;                         // all up to the JSON
    std::shared_ptr<const std::string> json;  // one line, which others share
  };
  // What follows an event's JSON.
  static constexpr std::string_view kEnd = "\n\n";
  // Keeps a connection that has nothing to say alive.
  static constexpr std::string_view kComment = ":\n\n";

  // All that is new in one of the runs, which take turns. Nothing: no run has news. The first event
  // of a run always comes, so that a client that has come back knows that it is heard. Where
  // several runs are followed, the event's name has the run's number: "update 2".
  std::optional<Event> next(const std::vector<RunSource>& sources);
  std::size_t runs() const { return runs_.size(); }

 private:
  struct Followed {
    std::size_t run = 0;
    bool begun = false;
    std::optional<std::uint64_t> version;  // that the client has
  };

  std::string id() const;

  std::uint64_t start_;
  std::vector<Followed> runs_;
  std::size_t turn_ = 0;
};

}  // namespace troupe::telemetry
