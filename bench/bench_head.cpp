// The processor time of a head by the number of its members: to which nothing happens, so what it
// costs to know that they live, and to tell all of them a View. Head and members are whole nodes
// over tcp, encrypted. The members are in a process of their own, driven by one thread, so that
// they speak as often as they would with a processor for each.
//
// usage: bench_head [--small | MEMBERS...]

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/message_fields.h"
#include "bench/measure.h"
#include "runtime/base/clock.h"
#include "runtime/node/node.h"
#include "runtime/step_scheduler.h"
#include "runtime/transport/keys.h"
#include "runtime/transport/zmq_wire.h"
#include "tests/support/process.h"

namespace troupe::bench {
namespace {

using namespace std::chrono_literals;
using runtime::ZmqWire;

const runtime::SteadyClock kClock;

runtime::WireTypes make_types() {
  runtime::WireTypes types;
  types.add<actors::ViewMessage>();
  return types;
}
const runtime::WireTypes kTypes = make_types();

// Stays until it is asked to go.
class Resting final : public runtime::Actor {
 public:
  void receive(runtime::Context&, runtime::Message) override {}
};

std::string member_name(int number) { return fmt::format("member.{}", number); }

runtime::Plan plan_of(int members) {
  runtime::Plan plan;
  plan.actors.push_back({"root", "root", "", false, "head"});
  for (int i = 0; i < members; ++i) {
    plan.actors.push_back({"root." + member_name(i), "root", "", false, member_name(i)});
  }
  return plan;
}

std::unique_ptr<runtime::Actor> make_actor(const runtime::ActorPlan&) {
  return std::make_unique<Resting>();
}

runtime::GateOptions gate_of(const std::string& node, std::uint64_t incarnation) {
  runtime::GateOptions gate;
  gate.node = node;
  gate.incarnation = incarnation;
  gate.pid = incarnation;
  // A machine for each, as far as the gates know.
  gate.machine = node;
  // The members share a thread, and none is to be taken for dead over it.
  gate.dead_after = 60s;
  return gate;
}

std::unique_ptr<ZmqWire> open_wire(const runtime::KeyPair& keys, const std::string& listen) {
  runtime::ZmqWireOptions options;
  options.clock = &kClock;
  options.keys = keys;
  options.allowed = {{keys.public_key, "members"}};
  options.listen = listen;
  options.server_key = keys.public_key;
  options.attach_within = 60s;
  return std::move(ZmqWire::open(options)).value();
}

struct Member {
  runtime::Log log = runtime::Log::silent();
  std::unique_ptr<ZmqWire> wire;
  std::unique_ptr<runtime::StepScheduler> scheduler;
  std::unique_ptr<runtime::Node> node;
};

// The child's whole life, which its parent ends.
int be_members(const runtime::KeyPair& keys, int count, const std::string& address) {
  runtime::ManualClock clock;
  const auto begun = kClock.now();
  std::vector<std::unique_ptr<Member>> members;
  const auto drive = [&] {
    clock.advance(kClock.now() - begun - clock.now());
    for (const auto& member : members) {
      while (member->scheduler->run_one()) {
      }
      member->node->tend();
      member->node->turn_gate(clock.now());
    }
  };
  while (true) {
    if (static_cast<int>(members.size()) < count) {
      const int number = static_cast<int>(members.size());
      auto& member = *members.emplace_back(std::make_unique<Member>());
      member.wire = open_wire(keys, "");
      member.scheduler = std::make_unique<runtime::StepScheduler>(number, clock);
      runtime::GateOptions gate = gate_of(member_name(number), 100 + number);
      gate.head_address = address;
      member.node = std::make_unique<runtime::Node>(
          plan_of(count), make_actor, runtime::NodeOptions{}, clock, member.log,
          runtime::Uplink{std::move(gate), *member.wire, kTypes, false}, member.scheduler.get());
      member.node->begin();
    }
    drive();
    std::this_thread::sleep_for(2ms);
  }
}

// A View of all of them, with two micro-batches for each.
actors::ViewPointer view_of(int members) {
  pipeline::View view;
  view.id = {1, 1};
  view.first_step = 123456;
  for (int i = 0; i < members; ++i) {
    view.ring.push_back(static_cast<std::uint32_t>(i));
    view.reached.push_back(view.first_step);
  }
  view.owners = view.ring;
  view.owners.insert(view.owners.end(), view.ring.begin(), view.ring.end());
  return std::make_shared<const pipeline::View>(std::move(view));
}

struct Load {
  double share = -1.0;        // seconds of processor for each of the clock; below 0: not all came
  double view_seconds = 0.0;  // of processor, to tell all members a View; median of five
};

Load measure(int members, std::chrono::seconds time) {
  const runtime::KeyPair keys = runtime::make_keys().value();
  int addresses[2];
  CHECK(::pipe(addresses) == 0, "no descriptors are left");
  ForkedProcess child([&] {
    char address[256] = "";
    if (::read(addresses[0], address, sizeof(address) - 1) <= 0) return 1;
    return be_members(keys, members, address);
  });
  const auto wire = open_wire(keys, "tcp://127.0.0.1:0");
  const std::string address = wire->address();
  CHECK(
      ::write(addresses[1], address.data(), address.size()) == static_cast<ssize_t>(address.size()),
      "the child is gone");
  runtime::Log log = runtime::Log::silent();
  runtime::Node node(plan_of(members), make_actor, {}, kClock, log,
                     runtime::Uplink{gate_of("head", 1), *wire, kTypes});
  std::thread running([&] { node.run(); });
  const auto are_up = [&] {
    int up = 0;
    for (const runtime::PeerStats& peer : node.peer_stats()) up += peer.state == "up" ? 1 : 0;
    return up;
  };
  const auto late = kClock.now() + 120s;
  while (are_up() < members && kClock.now() < late) std::this_thread::sleep_for(100ms);
  Load load;
  if (are_up() == members) {
    const auto used_in = [&](std::chrono::duration<double> pause) {
      const auto begun = kClock.now();
      const double used = core_seconds();
      std::this_thread::sleep_for(pause);
      return std::pair(core_seconds() - used, runtime::seconds(kClock.now() - begun));
    };
    std::this_thread::sleep_for(time / 2);
    const auto [resting, passed] = used_in(time);
    std::vector<double> views;
    for (int repeat = 0; repeat < 5; ++repeat) {
      const auto view = view_of(members);
      const double before = core_seconds();
      for (int i = 0; i < members; ++i) {
        node.send_control("root." + member_name(i),
                          runtime::Message::of(actors::ViewMessage{view}));
      }
      const double telling = core_seconds() - before;
      const auto [told, meanwhile] = used_in(1s);
      views.push_back(telling + told - meanwhile * resting / passed);
    }
    if (are_up() == members) load = {resting / passed, spread_of(views).median};
  }
  child.send(SIGKILL);
  node.request_stop();
  node.request_stop();
  running.join();
  ::close(addresses[0]);
  ::close(addresses[1]);
  return load;
}

int run_all(const std::vector<int>& numbers, std::chrono::seconds time) {
  double first = 0.0;
  fmt::print("members   head, share of a core   of the first line's   ms to tell all a View\n");
  for (const int members : numbers) {
    const auto [share, view_seconds] = measure(members, time);
    if (share < 0.0) {
      fmt::print(stderr, "{} members: not all of them came and stayed\n", members);
      return 1;
    }
    if (first == 0.0) first = share;
    fmt::print("{:>7} {:>20.2f} % {:>21.2f} {:>23.1f}\n", members, 100.0 * share, share / first,
               1e3 * view_seconds);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  if (argc == 2 && std::strcmp(argv[1], "--small") == 0) return troupe::bench::run_all({2, 8}, 1s);
  std::vector<int> numbers;
  for (int i = 1; i < argc; ++i) numbers.push_back(std::atoi(argv[i]));
  if (numbers.empty()) numbers = {32, 128, 512, 1024};
  return troupe::bench::run_all(numbers, 20s);
}
