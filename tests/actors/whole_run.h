#pragma once

// The toy trained by all actors of a plan in one process, in seeded steps.

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "runtime/actor.h"
#include "runtime/base/hash.h"
#include "runtime/node/node.h"

namespace troupe::actors {

// Passes everything on to another actor; for tests that add something to what that one does.
class Wrapped : public runtime::Actor {
 public:
  explicit Wrapped(std::unique_ptr<runtime::Actor> inner) : inner_(std::move(inner)) {}

  void start(runtime::Context& context) override { inner_->start(context); }
  void receive(runtime::Context& context, runtime::Message message) override {
    inner_->receive(context, std::move(message));
  }
  void credit_returned(runtime::Context& context, std::string_view port) override {
    inner_->credit_returned(context, port);
  }
  void timer(runtime::Context& context, runtime::TimerId id) override {
    inner_->timer(context, id);
  }
  void undeliverable(runtime::Context& context, runtime::Message message,
                     const runtime::Error& cause) override {
    inner_->undeliverable(context, std::move(message), cause);
  }
  void stop(runtime::Context& context) override { inner_->stop(context); }
  runtime::ChildDecision child_ended(runtime::Context& context,
                                     const runtime::ChildEnd& end) override {
    return inner_->child_ended(context, end);
  }
  std::string waiting_for() const override { return inner_->waiting_for(); }

 private:
  std::unique_ptr<runtime::Actor> inner_;
};

// What an actor of this kind is to be replaced with.
using Wrapper = std::function<std::unique_ptr<runtime::Actor>(const std::string& kind,
                                                              std::unique_ptr<runtime::Actor>)>;

struct WholeRun {
  runtime::Hash128 state_hash;  // of the end
  std::string validation;       // of the end, JSON
  std::vector<runtime::LinkStats> links;
};

// Two replicas, 8 iterations, with checkpoints and validation. CHECKs that it ends well.
WholeRun run_whole(std::uint64_t seed, const Wrapper& wrapper);

}  // namespace troupe::actors
