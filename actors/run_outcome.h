#pragma once

// What a run came to. The Coordinator fills it; read it when the node has ended.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "pipeline/steps/view.h"
#include "telemetry/record.h"

namespace troupe::actors {

struct RunOutcome {
  StatePointer state;    // the last committed one; null when no replica could report it
  bool stopped = false;  // by request, before its end
  double seconds = 0.0;  // see ReplicaEnd
  std::uint64_t timed_events = 0;
  bool saved = false;  // the state is in a checkpoint
  // A View after the first, and what people are told of it.
  struct ViewChange : telemetry::ViewFacts {
    pipeline::View view;
  };
  std::vector<ViewChange> changes;
  // The newest validation, as text for people and as JSON.
  struct Validation {
    std::string table;
    std::string json;
  };
  std::optional<Validation> validation;
};

}  // namespace troupe::actors
