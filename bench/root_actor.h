#pragma once

// The root actor of a bench's node.

#include "runtime/actor.h"
#include "runtime/node/gate_options.h"

namespace troupe::bench {

// Ends its node with the last of its children, and with the error of the first child or peer that
// is lost.
class Root final : public runtime::Actor {
 public:
  void start(runtime::Context& context) override { left_ = context.children(); }
  void receive(runtime::Context& context, runtime::Message message) override {
    if (const auto* lost = message.as<runtime::PeerLost>()) context.fail(lost->error);
  }
  runtime::ChildDecision child_ended(runtime::Context& context,
                                     const runtime::ChildEnd& end) override {
    if (end.error) return runtime::ChildDecision::kEscalate;
    if (--left_ == 0) context.finish();
    return runtime::ChildDecision::kIgnore;
  }

 private:
  int left_ = 0;
};

}  // namespace troupe::bench
