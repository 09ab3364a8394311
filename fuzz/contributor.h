#pragma once

// A replica without a model, so that the Reducer of its node has something to add: contributes a
// step of one micro-batch when it is told of a View, and the next one when it has the sum.

#include <cstdint>
#include <deque>
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

  void receive(runtime::Context& context, runtime::Message message) override {
    if (const auto* change = message.as<actors::ViewMessage>()) {
      view_ = change->view;
      out_.clear();
      contribute(context, view_->first_step, 0);
    } else if (const auto* header = message.as<actors::HeaderMessage>()) {
      const bool again = header->header.flagged && header->header.attempt == 0;
      const std::uint64_t step = header->header.step;
      contribute(context, again ? step : step + 1, again ? 1 : 0);
    } else if (message.as<actors::StopTraining>() != nullptr) {
      actors::ReplicaEnd end;
      end.replica = replica_;
      context.send_control("coordinator", runtime::Message::of(std::move(end)));
    }
  }
  void credit_returned(runtime::Context& context, std::string_view) override { flush(context); }
  void undeliverable(runtime::Context&, runtime::Message, const runtime::Error&) override {}

 private:
  void contribute(runtime::Context& context, std::uint64_t step, std::uint32_t attempt) {
    using runtime::Buffer;
    using runtime::Message;
    for (std::uint32_t i = 0; i < kBuckets; ++i) {
      const auto kind = floats_ && i == 0 ? pipeline::SumKind::kFloat32 : pipeline::SumKind::kInt64;
      const std::int64_t begin = i * kElements;
      out_.push_back(Message::of(
          actors::BucketMessage{step, attempt, i, begin, begin + kElements, kind, view_->id},
          {Buffer::zeroed(static_cast<std::size_t>(kElements) * pipeline::bytes_of(kind))}));
    }
    actors::HeaderMessage message;
    message.view = view_->id;
    message.header.step = step;
    message.header.attempt = attempt;
    message.header.exponents.resize(kTensors);
    message.header.micro_batches = 1;
    out_.push_back(Message::of(std::move(message)));
    flush(context);
  }
  // An unknown peer may tell of many Views.
  void flush(runtime::Context& context) {
    while (!out_.empty() && context.send("contributions", out_.front())) out_.pop_front();
  }

  std::uint32_t replica_;
  bool floats_;
  actors::ViewPointer view_;
  std::deque<runtime::Message> out_;
};

}  // namespace troupe::fuzz
