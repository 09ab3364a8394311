#include "runtime/group.h"

namespace troupe::runtime {

void Group::start(Context& context) {
  left_ = context.children();
  if (left_ == 0) context.finish();
}

void Group::receive(Context& context, Message message) {
  context.fail({ErrorKind::kInternal, "a group takes no messages, but got '" +
                                          std::string(message.name()) + "' from " +
                                          std::string(message.sender_name())});
}

ChildDecision Group::child_ended(Context& context, const ChildEnd& end) {
  if (end.error) {
    return end.restarts < options_.restarts ? ChildDecision::kRestart : ChildDecision::kEscalate;
  }
  if (--left_ == 0) context.finish();
  return ChildDecision::kIgnore;
}

std::string Group::waiting_for() const { return std::to_string(left_) + " children to end"; }

}  // namespace troupe::runtime
