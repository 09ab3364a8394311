#pragma once

// A replica without a model, so that the Reducer of its node has something to add: contributes a
// step of one micro-batch, and the next one when it has the sum.

#include <cstdint>
#include <string_view>
#include <utility>

#include "actors/messages.h"
#include "runtime/actor.h"
#include "runtime/base/buffer.h"

namespace troupe::fuzz {

// Ports as the Replica's: out "contributions", in "reduced".
class Contributor final : public runtime::Actor {
 public:
  static constexpr std::uint32_t kBuckets = 2;
  static constexpr std::int64_t kElements = 4;  // of each bucket
  static constexpr std::size_t kTensors = 2;

  // `floats`: of the first bucket.
  Contributor(std::uint32_t replica, bool floats) : replica_(replica), floats_(floats) {}

  void start(runtime::Context& context) override { contribute(context, 0, 0); }
  void receive(runtime::Context& context, runtime::Message message) override {
    if (const auto* header = message.as<actors::HeaderMessage>()) {
      const bool again = header->header.flagged && header->header.attempt == 0;
      const std::uint64_t step = header->header.step;
      contribute(context, again ? step : step + 1, again ? 1 : 0);
    } else if (message.as<actors::StopTraining>() != nullptr) {
      actors::ReplicaEnd end;
      end.replica = replica_;
      context.send_control("coordinator", runtime::Message::of(std::move(end)));
    }
  }
  void undeliverable(runtime::Context&, runtime::Message, const runtime::Error&) override {}

 private:
  void contribute(runtime::Context& context, std::uint64_t step, std::uint32_t attempt) {
    using runtime::Buffer;
    using runtime::Message;
    for (std::uint32_t i = 0; i < kBuckets; ++i) {
      const bool floats = floats_ && i == 0;
      const std::size_t width = floats ? sizeof(float) : sizeof(std::int64_t);
      const std::int64_t begin = i * kElements;
      send(context,
           Message::of(actors::BucketMessage{step, attempt, i, begin, begin + kElements, floats},
                       {Buffer::zeroed(static_cast<std::size_t>(kElements) * width)}));
    }
    actors::HeaderMessage message;
    message.header.step = step;
    message.header.attempt = attempt;
    message.header.exponents.resize(kTensors);
    message.header.micro_batches = 1;
    send(context, Message::of(std::move(message)));
  }
  // The link has room for all of two steps.
  static void send(runtime::Context& context, runtime::Message message) {
    CHECK(context.send("contributions", message), "no credit for a contribution");
  }

  std::uint32_t replica_;
  bool floats_;
};

}  // namespace troupe::fuzz
