#pragma once

// What follows from the roster rules (pipeline/steps/roster_rules.h), in the words of the messages
// that the Coordinator sends. Values.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "pipeline/steps/view.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

struct SendHalt {
  std::uint32_t member = 0;
  ViewId change;
};
struct SendTeach {  // to the teacher; begins or ends
  std::uint32_t teacher = 0, member = 0;
  bool begins = true;
};
struct SendBegin {  // the state that training begins with
  std::uint32_t replica = 0;
};
struct SendExpelled {
  std::uint32_t member = 0;
  runtime::Error error;
};
struct SendRelease {
  std::uint32_t member = 0;
  std::string why;
};
// A member is lost ("dead") or has left ("ended").
struct TellLoss {
  std::uint32_t member = 0;
  std::string state;
  runtime::Error error;
};
struct TellView {
  View view;
  bool begins = false;  // it is the first, and there is nothing more to tell
  std::vector<std::uint32_t> joined;
  std::vector<std::string> causes;
  std::string shared_anew;
  double halted_seconds = 0.0;
  std::uint32_t taken_over = 0;
  std::uint64_t kept_bytes = 0;
};
// Somebody has asked from outside that this member leaves, and it has become the last one.
struct RefuseLeave {
  std::uint32_t member = 0;
};
// Notes the error, if it is the run's first. Replicas are told to stop when training does.
struct StopTrainingOf {
  std::optional<runtime::Error> error;
  bool stops = false;
  std::vector<std::uint32_t> replicas;
};
struct SaveState {};  // no replica trains any more
struct EndRun {};     // there is nothing to save
struct LogLine {
  bool warns = false;
  std::string text;
};
using RosterAction =
    std::variant<SendHalt, SendTeach, SendBegin, SendExpelled, SendRelease, TellLoss, TellView,
                 RefuseLeave, StopTrainingOf, SaveState, EndRun, LogLine>;
using RosterActions = std::vector<RosterAction>;

}  // namespace troupe::pipeline
