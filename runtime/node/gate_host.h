#pragma once

// The node as its gate sees it.

#include <cstdint>
#include <string>

#include "runtime/base/error.h"
#include "runtime/message.h"
#include "runtime/wait_graph.h"

namespace troupe::runtime {

class Cell;

// Calls come from the gate's thread.
class GateHost {
 public:
  virtual ~GateHost() = default;
  // The actor of that name here, or nullptr.
  virtual Cell* find_cell(const std::string& actor) const = 0;
  // The origin of what that actor sends past all links; nullptr: there is no such actor here.
  virtual Origin* control_origin_of(const std::string& actor) = 0;
  // The message holds on to its credit; `cause` says why its target did not take it.
  virtual void return_to_sender(Message message, const Error& cause) = 0;
  virtual void tell_root(Message message) = 0;
  virtual std::int64_t own_progress() const = 0;
  virtual WaitGraph wait_graph() const = 0;
  virtual void graph_arrived() = 0;
  virtual void gate_closed() = 0;
};

}  // namespace troupe::runtime
