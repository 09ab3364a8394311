// The patterns of bench_runtime on ZeroMQ's inproc sockets as they are: a thread per end, since a
// blocking socket has to have one. Numbers are copied into messages, or travel as a pointer to
// where they stand.

#include <zmq.hpp>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/runtime_cases.h"

namespace troupe::bench {
namespace {

using std::chrono::steady_clock;

// What an actor's message carries, too.
struct Number {
  std::int64_t sender;
  std::int64_t value;
};

// As many as Troupe's links have credits, so that both keep the same number under way.
constexpr int kHighWater = 512;

zmq::socket_t make_socket(zmq::context_t& context, zmq::socket_type type) {
  zmq::socket_t socket(context, type);
  socket.set(zmq::sockopt::sndhwm, kHighWater);
  socket.set(zmq::sockopt::rcvhwm, kHighWater);
  socket.set(zmq::sockopt::linger, 0);
  return socket;
}

void send(zmq::socket_t& socket, Number* number, bool copied) {
  if (copied) {
    socket.send(zmq::buffer(number, sizeof(*number)), zmq::send_flags::none);
    return;
  }
  // The numbers stand in a table that outlives the messages.
  zmq::message_t message(
      number, sizeof(*number), [](void*, void*) {}, nullptr);
  socket.send(message, zmq::send_flags::none);
}

Number receive(zmq::socket_t& socket, zmq::message_t& message) {
  Number number{-1, -1};
  (void)socket.recv(message, zmq::recv_flags::none);
  if (message.size() == sizeof(number)) std::memcpy(&number, message.data(), sizeof(number));
  return number;
}

std::vector<Number> numbers_of(std::int64_t sender, std::int64_t count) {
  std::vector<Number> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back({sender, i});
  return numbers;
}

RuntimeRun many_to_one(const RuntimeCase& run, int senders, bool copied) {
  zmq::context_t context(1);
  zmq::socket_t pull = make_socket(context, zmq::socket_type::pull);
  pull.bind("inproc://numbers");
  std::vector<std::vector<Number>> numbers;
  for (int i = 0; i < senders; ++i) numbers.push_back(numbers_of(i, run.messages / senders));
  const auto first = steady_clock::now();
  std::vector<std::jthread> threads;
  for (int i = 0; i < senders; ++i) {
    threads.emplace_back([&, i] {
      zmq::socket_t push = make_socket(context, zmq::socket_type::push);
      push.set(zmq::sockopt::linger, -1);
      push.connect("inproc://numbers");
      for (Number& number : numbers[static_cast<std::size_t>(i)]) send(push, &number, copied);
    });
  }
  RuntimeRun result;
  std::vector<std::int64_t> expected(static_cast<std::size_t>(senders));
  zmq::message_t message;
  for (std::int64_t left = run.messages / senders * senders; left > 0; --left) {
    const Number number = receive(pull, message);
    if (number.sender < 0 || number.sender >= senders ||
        expected[static_cast<std::size_t>(number.sender)]++ != number.value) {
      result.complaint = "a message came out of order or with other content";
    }
  }
  result.seconds = std::chrono::duration<double>(steady_clock::now() - first).count();
  return result;
}

RuntimeRun ping_pong(const RuntimeCase& run, bool copied) {
  zmq::context_t context(1);
  zmq::socket_t ping = make_socket(context, zmq::socket_type::pair);
  ping.bind("inproc://ball");
  std::jthread pong([&] {
    zmq::socket_t socket = make_socket(context, zmq::socket_type::pair);
    socket.set(zmq::sockopt::linger, -1);
    socket.connect("inproc://ball");
    zmq::message_t message;
    for (std::int64_t turn = 0; turn < run.messages; ++turn) {
      Number number = receive(socket, message);
      if (copied) {
        send(socket, &number, true);
      } else {
        socket.send(message, zmq::send_flags::none);
      }
    }
  });
  RuntimeRun result;
  std::vector<Number> numbers = numbers_of(0, run.messages);
  zmq::message_t message;
  const auto first = steady_clock::now();
  for (Number& number : numbers) {
    send(ping, &number, copied);
    if (receive(ping, message).value != number.value) result.complaint = "a ball was lost";
  }
  result.seconds = std::chrono::duration<double>(steady_clock::now() - first).count();
  return result;
}

RuntimeRun run_on_zmq(const RuntimeCase& run, bool copied) {
  switch (run.pattern) {
    case RuntimeCase::Pattern::kOneToOne:
      return many_to_one(run, 1, copied);
    case RuntimeCase::Pattern::kFanIn:
      return many_to_one(run, kFanInSenders, copied);
    case RuntimeCase::Pattern::kPingPong:
      return ping_pong(run, copied);
  }
  return {};
}

}  // namespace

RuntimeRun run_on_zmq_copying(const RuntimeCase& run) { return run_on_zmq(run, true); }
RuntimeRun run_on_zmq_sharing(const RuntimeCase& run) { return run_on_zmq(run, false); }

}  // namespace troupe::bench
