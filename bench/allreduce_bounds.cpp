#include "bench/allreduce_case.h"

#include <fmt/format.h>
#include <unistd.h>

#include <zmq.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

namespace troupe::bench {
namespace {

constexpr std::size_t kMessageBytes = std::size_t{1} << 20;

std::size_t bytes_of_an_edge(const AllreduceLoad& load) {
  const auto processes = static_cast<std::size_t>(load.processes);
  return 2 * (processes - 1) * load.bytes / processes;
}

// A process that sends to the next and takes from the one before.
class Neighbour {
 public:
  Neighbour(const std::string& own, const std::string& next)
      : context_(1), from_(context_, ZMQ_PULL), to_(context_, ZMQ_PUSH) {
    for (zmq::socket_t* socket : {&from_, &to_}) {
      socket->set(zmq::sockopt::sndhwm, 0);
      socket->set(zmq::sockopt::rcvhwm, 0);
    }
    // Ports would have to be told: one that is free here may be taken there.
    from_.bind(own);
    to_.connect(next);
  }

  void send(const std::vector<float>& values, std::size_t bytes) {
    const auto* begin = reinterpret_cast<const char*>(values.data());
    for (std::size_t sent = 0; sent < bytes;) {
      const std::size_t part = std::min(kMessageBytes, bytes - sent);
      // Where it stands in the buffer is all the same: nobody adds.
      zmq::message_t message(const_cast<char*>(begin), part, [](void*, void*) {});
      to_.send(message, zmq::send_flags::none);
      sent += part;
    }
  }
  // False: other bytes than were sent.
  bool take(const std::vector<float>& expected, std::size_t bytes, bool look) {
    bool right = true;
    zmq::message_t message;
    for (std::size_t taken = 0; taken < bytes; taken += message.size()) {
      (void)from_.recv(message);
      right = right && (!look || std::memcmp(message.data(), expected.data(), message.size()) == 0);
    }
    return right;
  }

 private:
  zmq::context_t context_;
  zmq::socket_t from_, to_;
};

// `sends`: how many bytes each rank sends in a step.
template <class Sends>
AllreduceRun be_neighbour(const AllreduceLoad& load, int processes, int rank, int first_port,
                          const Sends& sends) {
  const auto address = [&](int of) { return fmt::format("tcp://127.0.0.1:{}", first_port + of); };
  const int before = (rank + processes - 1) % processes;
  try {
    const std::size_t out = sends(rank), in = sends(before);
    std::vector<float> own(std::max(kMessageBytes, out) / sizeof(float));
    std::vector<float> others(std::max(kMessageBytes, in) / sizeof(float));
    fill(rank, own);
    fill(before, others);
    // Sends from where the values stand, so it goes before they do.
    Neighbour neighbour(address(rank), address((rank + 1) % processes));
    bool right = true;
    AllreduceWatch watch;
    for (int step = 0; step < kWarmingSteps + load.steps; ++step) {
      if (step == kWarmingSteps) watch.start();
      neighbour.send(own, out);
      right &= neighbour.take(others, in, step == 0);
    }
    if (!right) return {0, 0, "other bytes than were sent"};
    return watch.stop(load);
  } catch (const zmq::error_t& failure) {
    return {0, 0, failure.what()};
  }
}

// Below those that the system gives away by itself, and not the same for runs side by side.
int some_port() { return 20'000 + static_cast<int>(::getpid() % 1'000) * 10; }

}  // namespace

AllreduceRun run_memcpy(const AllreduceLoad& load) {
  std::vector<float> from(load.elements()), to(load.elements());
  fill(0, from);
  AllreduceWatch watch;
  for (int step = 0; step < kWarmingSteps + load.steps; ++step) {
    if (step == kWarmingSteps) watch.start();
    std::memcpy(to.data(), from.data(), load.bytes);
    // The copy is of use to nobody else.
    asm volatile("" : : "r"(to.data()) : "memory");
  }
  AllreduceRun run = watch.stop(load);
  if (from != to) run.complaint = "a copy that differs";
  return run;
}

AllreduceRun run_zmq_ring(const AllreduceLoad& load) {
  const int port = some_port();
  return run_forked(load.processes, [&](int rank) {
    return be_neighbour(load, load.processes, rank, port,
                        [&](int) { return bytes_of_an_edge(load); });
  });
}

AllreduceRun run_zmq_pair(const AllreduceLoad& load) {
  const int port = some_port();
  return run_forked(2, [&](int rank) {
    // What goes back only says that all has come.
    return be_neighbour(load, 2, rank, port,
                        [&](int of) { return of == 0 ? bytes_of_an_edge(load) : sizeof(float); });
  });
}

}  // namespace troupe::bench
