// Payload throughput between two processes' ends, over each transport, next to a plain ZeroMQ
// PUSH/PULL pair over tcp of the same sizes and to memcpy, in the same run. A producer and a
// consumer thread stand for the processes; every payload's content is looked at before any timing.

#include <fmt/format.h>
#include <unistd.h>

#include <zmq.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "bench/measure.h"
#include "bench/payload.h"
#include "runtime/base/clock.h"
#include "runtime/transport/zmq_wire.h"

namespace troupe::bench {
namespace {

using runtime::Buffer;
using runtime::ConnectionId;
using runtime::ConnectionInfo;
using runtime::KeyPair;
using runtime::Lane;
using runtime::Packet;
using runtime::SteadyClock;
using runtime::ZmqWire;
using runtime::ZmqWireOptions;

// So much may be under way, like the credits of a generous link: enough to keep a pipe full.
constexpr std::size_t kWindowBytes = std::size_t{64} << 20;

struct Load {
  std::size_t payload_bytes;
  std::size_t payloads;         // timed, after as many as the window holds twice, which are not
  std::size_t window_payloads;  // most that may be under way
  std::size_t window() const {
    return std::clamp<std::size_t>(kWindowBytes / payload_bytes, 2, window_payloads);
  }
  std::size_t warming() const { return 2 * window(); }
  std::size_t all() const { return warming() + payloads; }
  double gigabytes() const {
    return static_cast<double>(payload_bytes) * static_cast<double>(payloads) / 1e9;
  }
};

struct Measured {
  double seconds = 0;
  double core_seconds = 0;  // of the whole process
  bool right = false;
};

const SteadyClock kClock;

// How many payloads have come, for both threads; the time from the end of the warming on.
class Progress {
 public:
  explicit Progress(const Load& load) : load_(load) {}

  // The consumer's thread.
  void one_more() {
    const std::size_t now = taken_.fetch_add(1, std::memory_order_release) + 1;
    // Waking up at every payload would be what is measured.
    if (now % step() == 0 || now == load_.all()) taken_.notify_one();
    if (now != load_.warming()) return;
    start_ = kClock.now();
    cores_ = core_seconds();
  }
  Measured stop(bool right) const {
    return {std::chrono::duration<double>(kClock.now() - start_).count(), core_seconds() - cores_,
            right};
  }

  // The producer's thread.
  bool may_send(std::size_t sent) const {
    return sent - taken_.load(std::memory_order_acquire) < load_.window();
  }
  void wait_to_send(std::size_t sent) const {
    while (!may_send(sent)) taken_.wait(sent - load_.window(), std::memory_order_acquire);
  }

 private:
  std::size_t step() const { return std::max<std::size_t>(1, load_.window() / 16); }

  const Load load_;
  std::atomic<std::size_t> taken_ = 0;
  runtime::TimePoint start_{};
  double cores_ = 0;
};

// Each payload is a Buffer of its own with its number, made before the time starts and sent again
// and again: a ring of them as long as the window allows.
std::vector<Buffer> payloads_for(const Load& load) {
  std::vector<Buffer> payloads;
  const std::size_t count = load.window() + 1;
  for (std::size_t i = 0; i < count; ++i) payloads.push_back(payload_of(load.payload_bytes, i));
  return payloads;
}

class Consumer final : public runtime::WireEvents {
 public:
  Consumer(const Load& load, std::size_t ring, bool whole)
      : progress(load), load_(load), ring_(ring), whole_(whole) {}
  void connected(ConnectionId, const ConnectionInfo&) override {}
  void arrived(ConnectionId, Lane, Packet packet) override {
    right_ = right_ && packet.payloads.size() == 1 &&
             packet.payloads[0].size() == load_.payload_bytes &&
             is_payload(packet.payloads[0].as<std::uint64_t>(), count_ % ring_, whole_);
    ++count_;
    packet = {};
    progress.one_more();
  }
  void disconnected(ConnectionId, const runtime::Error&) override { gone_ = true; }
  bool right() const { return right_ && count_ == load_.all(); }
  bool going() const { return !gone_ && count_ < load_.all(); }

  Progress progress;

 private:
  const Load load_;
  const std::size_t ring_;
  const bool whole_;
  std::size_t count_ = 0;
  bool right_ = true;
  bool gone_ = false;
};

class Producer final : public runtime::WireEvents {
 public:
  void connected(ConnectionId, const ConnectionInfo&) override { open = true; }
  void arrived(ConnectionId, Lane, Packet) override {}
  void disconnected(ConnectionId, const runtime::Error& why) override {
    fmt::print(stderr, "disconnected: {}\n", why.message);
  }
  bool open = false;
};

struct Transport {
  const char* name;
  const char* listen;
  bool shared;
  bool curve;
};

// The producer's thread, once the connection is there.
void produce(ZmqWire& wire, Producer& events, ConnectionId id, const std::vector<Buffer>& payloads,
             const Load& load, const Progress& progress) {
  for (std::size_t sent = 0; sent < load.all(); ++sent) {
    if (!progress.may_send(sent)) {
      wire.poll(events, kClock.now());
      progress.wait_to_send(sent);
    }
    Packet packet;
    packet.header = Buffer::zeroed(16);
    packet.payloads.push_back(payloads[sent % payloads.size()]);
    wire.send(id, Lane::kData, std::move(packet));
    if (sent % 64 == 0) wire.poll(events, kClock.now());
  }
  wire.poll(events, kClock.now());
}

Measured run_wire(const Transport& transport, const Load& load, bool whole) {
  ZmqWireOptions options;
  options.clock = &kClock;
  options.shared_memory = transport.shared;
  options.shared_from_bytes = 0;
  const KeyPair there = *runtime::make_keys();
  const KeyPair here = *runtime::make_keys();
  options.listen = transport.listen;
  if (options.listen.starts_with("ipc")) options.listen += std::to_string(::getpid());
  if (transport.curve) {
    options.keys = there;
    options.allowed = {{here.public_key, "producer"}};
  }
  auto listener = std::move(ZmqWire::open(options)).value();
  options.listen = "";
  if (transport.curve) {
    options.keys = here;
    options.server_key = there.public_key;
  }
  auto dialer = std::move(ZmqWire::open(options)).value();
  const std::vector<Buffer> payloads = payloads_for(load);
  Consumer consumer(load, payloads.size(), whole);
  Producer producer;
  const ConnectionId id = *dialer->dial(listener->address());
  const auto soon = [] { return kClock.now() + std::chrono::milliseconds(1); };
  while (!producer.open) {
    listener->poll(consumer, soon());
    dialer->poll(producer, soon());
  }
  std::thread sender([&] { produce(*dialer, producer, id, payloads, load, consumer.progress); });
  while (consumer.going()) listener->poll(consumer, runtime::TimePoint::max());
  const Measured measured = consumer.progress.stop(consumer.right());
  sender.join();
  return measured;
}

// The peer: one PUSH, one PULL, one context each, frames sent without a copy.
Measured run_plain_zmq(const Load& load, bool whole) {
  zmq::context_t there(1);
  zmq::context_t here(1);
  zmq::socket_t pull(there, ZMQ_PULL);
  zmq::socket_t push(here, ZMQ_PUSH);
  for (zmq::socket_t* socket : {&pull, &push}) {
    socket->set(zmq::sockopt::sndhwm, 0);
    socket->set(zmq::sockopt::rcvhwm, 0);
  }
  pull.bind("tcp://127.0.0.1:*");
  push.connect(pull.get(zmq::sockopt::last_endpoint));
  const std::vector<Buffer> payloads = payloads_for(load);
  push.send(zmq::str_buffer("begin"));
  zmq::message_t message;
  (void)pull.recv(message);
  Progress progress(load);
  std::thread sender([&] {
    for (std::size_t sent = 0; sent < load.all(); ++sent) {
      progress.wait_to_send(sent);
      const Buffer& payload = payloads[sent % payloads.size()];
      zmq::message_t out(const_cast<std::byte*>(payload.data()), payload.size(),
                         [](void*, void*) {});
      push.send(out, zmq::send_flags::none);
    }
  });
  bool right = true;
  for (std::size_t i = 0; i < load.all(); ++i) {
    (void)pull.recv(message);
    right =
        right && message.size() == load.payload_bytes &&
        is_payload({message.data<std::uint64_t>(), message.size() / 8}, i % payloads.size(), whole);
    progress.one_more();
  }
  const Measured measured = progress.stop(right);
  sender.join();
  return measured;
}

// The bound: the same bytes from one place to another, by one thread.
Measured run_memcpy(const Load& load, bool whole) {
  const std::vector<Buffer> payloads = payloads_for(load);
  std::vector<Buffer> targets;
  for (std::size_t i = 0; i < 2; ++i) targets.push_back(Buffer::zeroed(load.payload_bytes));
  Progress progress(load);
  bool right = true;
  for (std::size_t i = 0; i < load.all(); ++i) {
    const std::size_t number = i % payloads.size();
    Buffer& target = targets[i % 2];
    std::memcpy(target.mutable_data(), payloads[number].data(), load.payload_bytes);
    right = right && is_payload(target.as<std::uint64_t>(), number, whole);
    progress.one_more();
  }
  return progress.stop(right);
}

struct Contender {
  const char* name;
  std::function<Measured(const Load&, bool whole)> run;
  std::vector<double> rates{};           // GB/s
  std::vector<double> rates_per_core{};  // GB per core second
};

std::vector<Contender> contenders() {
  static const Transport kTransports[] = {
      {"ipc, inline", "ipc:///tmp/troupe-bench-wire-", false, false},
      {"ipc, shared memory", "ipc:///tmp/troupe-bench-wire-", true, false},
      {"tcp", "tcp://127.0.0.1:0", false, false},
      {"tcp, CURVE", "tcp://127.0.0.1:0", false, true}};
  std::vector<Contender> all = {{"memcpy", run_memcpy}, {"plain ZeroMQ tcp", run_plain_zmq}};
  for (const Transport& transport : kTransports) {
    all.push_back({transport.name, [&transport](const Load& load, bool whole) {
                     return run_wire(transport, load, whole);
                   }});
  }
  return all;
}

// Alternates between all, so that each meets the same state of the machine. False: a result was
// wrong.
bool compare(const Load& load, int repeats) {
  std::vector<Contender> all = contenders();
  for (int repeat = -1; repeat < repeats; ++repeat) {
    for (Contender& contender : all) {
      // The first round looks at every byte and is not counted.
      const bool whole = repeat < 0;
      Load round = load;
      if (whole) round.payloads = std::min<std::size_t>(load.payloads, 20);
      const Measured measured = contender.run(round, whole);
      if (!measured.right) {
        fmt::print(stderr, "{} at {} bytes: wrong payloads\n", contender.name, load.payload_bytes);
        return false;
      }
      if (whole) continue;
      contender.rates.push_back(round.gigabytes() / measured.seconds);
      contender.rates_per_core.push_back(round.gigabytes() / measured.core_seconds);
    }
  }
  fmt::print("payloads of {} KiB\n", load.payload_bytes >> 10);
  const double copied = spread_of(all[0].rates).median;
  const double plain = spread_of(all[1].rates).median;
  const double plain_per_core = spread_of(all[1].rates_per_core).median;
  for (const Contender& contender : all) {
    const auto [rate, low, high] = spread_of(contender.rates);
    const double per_core = spread_of(contender.rates_per_core).median;
    fmt::print(
        "  {:<19}{:6.2f} GB/s (min {:.2f}, max {:.2f}), {:5.2f} of plain ZeroMQ, {:5.2f} of "
        "memcpy; "
        "{:6.2f} GB per core second, {:5.2f} of plain ZeroMQ\n",
        contender.name, rate, low, high, rate / plain, rate / copied, per_core,
        per_core / plain_per_core);
  }
  std::fflush(stdout);  // a table is worth having though a later one takes long
  return true;
}

int run(bool small, std::vector<std::size_t> sizes_kib) {
  if (sizes_kib.empty() && small) sizes_kib = {64, 1024};
  if (sizes_kib.empty()) sizes_kib = {64, 1024, 16 << 10, 64 << 10};
  const std::size_t total = std::size_t{small ? 16u : 1024u} << 20;
  const std::size_t most_payloads = small ? 8 : 64;
  bool right = true;
  for (const std::size_t kib : sizes_kib) {
    const std::size_t bytes = kib << 10;
    const Load load{bytes, std::max<std::size_t>(2, total / bytes), most_payloads};
    right &= compare(load, small ? 1 : 7);
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace troupe::bench

// [--small] [KIB...]: other sizes than the usual ones.
int main(int argc, char** argv) {
  bool small = false;
  std::vector<std::size_t> sizes_kib;
  for (const char* argument : std::span(argv + 1, argv + argc)) {
    if (std::strcmp(argument, "--small") == 0) {
      small = true;
    } else {
      sizes_kib.push_back(std::max(1UL, std::strtoul(argument, nullptr, 10)));
    }
  }
  return troupe::bench::run(small, sizes_kib);
}
