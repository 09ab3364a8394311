#pragma once

// A replica that besides its own work tells the Coordinator now and then how fast it is, as if its
// machine were fast for a while and slow for the next. Nothing that is simulated takes time to
// compute.

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "actors/messages.h"
#include "pipeline/steps/balance.h"
#include "runtime/actor.h"
#include "tests/sim/world.h"

namespace troupe::sim {

class SpeedTeller final : public runtime::Actor {
 public:
  SpeedTeller(std::unique_ptr<runtime::Actor> actor, std::uint32_t replica, Dice& dice)
      : actor_(std::move(actor)), replica_(replica), dice_(dice) {}

  void start(runtime::Context& context) override {
    actor_->start(context);
    next_ = context.after(kEvery);
  }
  void receive(runtime::Context& context, runtime::Message message) override {
    actor_->receive(context, std::move(message));
  }
  void credit_returned(runtime::Context& context, std::string_view port) override {
    actor_->credit_returned(context, port);
  }
  void timer(runtime::Context& context, runtime::TimerId id) override {
    if (id != next_) return actor_->timer(context, id);
    // As long as the Coordinator needs to believe it.
    if (told_++ % (pipeline::Balancer::kRounds + 1) == 0) {
      seconds_ = static_cast<double>(1 + dice_.below(20));
    }
    context.send_control("coordinator",
                         runtime::Message::of(actors::Pace{replica_, 0, 16, seconds_}));
    next_ = context.after(kEvery);
  }
  void undeliverable(runtime::Context& context, runtime::Message message,
                     const runtime::Error& cause) override {
    actor_->undeliverable(context, std::move(message), cause);
  }
  void stop(runtime::Context& context) override { actor_->stop(context); }
  runtime::ChildDecision child_ended(runtime::Context& context,
                                     const runtime::ChildEnd& end) override {
    return actor_->child_ended(context, end);
  }
  std::string waiting_for() const override { return actor_->waiting_for(); }

 private:
  static constexpr auto kEvery = std::chrono::milliseconds(10);

  std::unique_ptr<runtime::Actor> actor_;
  std::uint32_t replica_;
  Dice& dice_;
  int told_ = 0;
  double seconds_ = 0.0;
  runtime::TimerId next_;
};

}  // namespace troupe::sim
