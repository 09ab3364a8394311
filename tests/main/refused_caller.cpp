#include "tests/main/refused_caller.h"

#include <chrono>
#include <variant>

#include "runtime/base/clock.h"
#include "runtime/transport/zmq_wire.h"

namespace troupe {
namespace {

class Caller final : public runtime::WireEvents {
 public:
  Caller(runtime::Wire& wire, const std::function<runtime::Packet()>& word)
      : wire_(wire), word_(word) {}

  void connected(runtime::ConnectionId connection, const runtime::ConnectionInfo&) override {
    wire_.send(connection, runtime::Lane::kControl, word_());
  }
  void arrived(runtime::ConnectionId, runtime::Lane, runtime::Packet packet) override {
    const auto read = runtime::unpack(packet, types_);
    const auto* refusal = read.ok() ? std::get_if<runtime::Refusal>(&*read) : nullptr;
    answer = refusal == nullptr ? "something else" : refusal->error.message;
  }
  void disconnected(runtime::ConnectionId, const runtime::Error& why) override {
    if (answer.empty()) answer = "disconnected: " + why.message;
  }
  std::string answer;

 private:
  runtime::Wire& wire_;
  const std::function<runtime::Packet()>& word_;
  const runtime::WireTypes types_;
};

}  // namespace

std::string refusal_of(const std::string& address, const std::function<runtime::Packet()>& word) {
  const runtime::SteadyClock clock;
  runtime::ZmqWireOptions options;
  options.clock = &clock;
  const auto wire = runtime::ZmqWire::open(options);
  if (!wire.ok()) return wire.error().message;
  Caller caller(**wire, word);
  if (const auto dialed = (*wire)->dial(address); !dialed.ok()) return dialed.error().message;
  const auto until = clock.now() + std::chrono::seconds(30);
  while (caller.answer.empty() && clock.now() < until) {
    (*wire)->poll(caller, clock.now() + std::chrono::milliseconds(100));
  }
  return caller.answer;
}

}  // namespace troupe
