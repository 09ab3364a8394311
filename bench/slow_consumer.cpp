#include "bench/slow_consumer.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "bench/gate_actors.h"
#include "runtime/base/clock.h"
#include "runtime/transport/zmq_wire.h"
#include "tests/support/process.h"

namespace troupe::bench {

namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr auto kConsuming = std::chrono::milliseconds(10);
constexpr auto kSampleEvery = std::chrono::milliseconds(50);

// The exit code of one of the two processes. `address_pipe` carries the listener's address.
int run_node(bool listens, const GateLoad& load, int address_pipe) {
  const runtime::SteadyClock clock;
  runtime::ZmqWireOptions options;
  options.clock = &clock;
  options.shared_memory = false;  // two hosts have none
  if (listens) options.listen = "127.0.0.1:0";
  auto wire = runtime::ZmqWire::open(options);
  if (!wire.ok()) return 1;
  std::string address;
  if (listens) {
    address = (*wire)->address() + "\n";
    if (::write(address_pipe, address.data(), address.size()) < 0) return 1;
  } else {
    for (char byte = 0; ::read(address_pipe, &byte, 1) == 1 && byte != '\n';) address += byte;
  }
  const GateRun run = run_gate_node(load, **wire, address, listens);
  if (!run.complaint.empty()) fmt::print(stderr, "{}\n", run.complaint);
  return run.complaint.empty() ? 0 : 1;
}

double resident_mb(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/statm", process));
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

// One of the two processes, with its memory, sampled until it ends.
struct Side {
  ForkedProcess process;
  double first_mb = 0, most_mb = 0;

  void look(bool settled) {
    const double now_mb = process.running() ? resident_mb(process.pid()) : 0;
    if (!settled || now_mb <= 0) return;
    if (first_mb <= 0) first_mb = now_mb;
    most_mb = std::max(most_mb, now_mb);
  }
};

}  // namespace

Result<SlowConsumerRun> run_slow_consumer(double seconds) {
  const std::chrono::duration<double> each = kConsuming;
  SlowConsumerRun run;
  run.messages = std::max<std::int64_t>(100, static_cast<std::int64_t>(seconds / each.count()));
  const GateLoad load{.payload_bytes = std::size_t{64} << 10,
                      .messages = run.messages,
                      .credits = 32,
                      .whole = true,
                      .producing = kConsuming / 100,
                      .consuming = kConsuming};
  int ends[2];
  if (::pipe(ends) != 0) return Error{ErrorKind::kInternal, "no pipe"};
  const auto side = [&](bool listens) {
    return [&, listens] {
      ::close(ends[listens ? 0 : 1]);
      return run_node(listens, load, ends[listens ? 1 : 0]);
    };
  };
  Side producer{ForkedProcess(side(false))}, consumer{ForkedProcess(side(true))};
  ::close(ends[0]);
  ::close(ends[1]);
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const double settling = std::min(1.0, seconds / 4);
  while (producer.process.running() || consumer.process.running()) {
    for (Side* one : {&producer, &consumer}) {
      one->look(passed() > settling);
      // One that failed alone would be waited for in vain.
      Side* other = one == &producer ? &consumer : &producer;
      if (!one->process.running() && one->process.status() != 0) other->process.send(SIGTERM);
    }
    std::this_thread::sleep_for(kSampleEvery);
  }
  run.seconds = passed();
  if (producer.process.status() != 0 || consumer.process.status() != 0) {
    return Error{ErrorKind::kInternal, "messages were lost, or a process failed"};
  }
  run.producer_mb = producer.most_mb;
  run.producer_growth_mb = producer.most_mb - producer.first_mb;
  run.consumer_mb = consumer.most_mb;
  run.consumer_growth_mb = consumer.most_mb - consumer.first_mb;
  return run;
}

}  // namespace troupe::bench
