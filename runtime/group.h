#pragma once

// An actor that only owns others: the root of a plan whose actors know by themselves when they are
// done, or a branch whose actors fail and restart together.

#include "runtime/actor.h"

namespace troupe::runtime {

struct GroupOptions {
  int restarts = 0;  // how often each child that fails is restarted before the failure escalates
};

// Finishes when each of its children has finished.
class Group final : public Actor {
 public:
  explicit Group(GroupOptions options) : options_(options) {}

  void start(Context& context) override;
  // Takes no messages. A message is a mistake in the plan and fails the group with an error that
  // names both.
  void receive(Context& context, Message message) override;
  ChildDecision child_ended(Context& context, const ChildEnd& end) override;
  std::string waiting_for() const override;

 private:
  GroupOptions options_;
  int left_ = 0;
};

}  // namespace troupe::runtime
