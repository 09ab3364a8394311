#pragma once

// A stage for tests of nodes that find each other through the plan's first one, with processes
// among them that say what they like.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/runtime/gates.h"

namespace troupe::runtime {

// A process that says what the test likes, and notes what it hears. Made after all real ones.
class Impostor final : public WireEvents {
 public:
  using Heard = std::function<void(Impostor&, ConnectionId, const AnyPacket&)>;
  Impostor(sim::World& world, const std::string& address, Heard heard)
      : wire_(world.network().add(address)), heard_(std::move(heard)) {
    for (TimePoint at{0}; at <= std::chrono::seconds(20); at += std::chrono::milliseconds(5)) {
      world.at(at, [this] { wire_.poll(*this, TimePoint{0}); });
    }
  }
  // Introduces itself so as soon as it is connected.
  void dial(const std::string& address, const Hello& hello) {
    hellos_[wire_.dial(address)->number] = hello;
  }
  void say(ConnectionId connection, const Packet& packet) {
    wire_.send(connection, Lane::kControl, packet);
  }
  void connected(ConnectionId connection, const ConnectionInfo&) override {
    const auto hello = hellos_.find(connection.number);
    if (hello != hellos_.end()) say(connection, pack(hello->second));
  }
  void arrived(ConnectionId connection, Lane, Packet packet) override {
    const auto read = unpack(packet, number_types());
    ASSERT_TRUE(read.ok()) << read.error().message;
    if (const auto* refusal = std::get_if<Refusal>(&*read)) refused_ = refusal->error.message;
    heard_(*this, connection, *read);
  }
  void disconnected(ConnectionId, const Error&) override {}
  const std::string& refused() const { return refused_; }

 private:
  sim::SimWire& wire_;
  Heard heard_;
  std::map<std::uint64_t, Hello> hellos_;
  std::string refused_;
};

inline Hello hello_of(const std::string& node, std::uint64_t incarnation,
                      const std::string& address) {
  Hello hello;
  hello.node = node;
  hello.incarnation = incarnation;
  hello.address = address;
  return hello;
}

inline void hear_nothing(Impostor&, ConnectionId, const AnyPacket&) {}

// Nodes a (the first), b and c, with a link from b to c and one back.
class NeighbourGates : public Gates {
 protected:
  NeighbourGates() { make_plan(); }
  void make_plan() {
    plan_ = {};
    actor("a", "root.a", root("a", 1));
    actor("b", "root.b", root("b", 2));
    actor("b", "sender.b", counting_sender(20));
    actor("b", "receiver.b", noting_receiver(at_b_, 20));
    actor("c", "root.c", root("c", 2));
    actor("c", "sender.c", counting_sender(20));
    actor("c", "receiver.c", noting_receiver(at_c_, 20));
    link("sender.b", "receiver.c", 3);
    link("sender.c", "receiver.b", 3);
  }
  void stop_all_at(TimePoint when) {
    world_->at(when, [this] {
      for (sim::ProcessId id = 0; id < world_->processes(); ++id) {
        if (!world_->end(id) && world_->has_node(id)) world_->node(id).request_stop();
      }
    });
  }

  std::vector<std::int64_t> at_b_, at_c_;
};

}  // namespace troupe::runtime
