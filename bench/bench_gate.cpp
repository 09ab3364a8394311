// One actor that sends to another over a plan's link, within a process and between two (a fork), so
// with everything that a link between nodes costs: headers, acknowledgements, credits that come
// back over the wire. Each medium is verified before it is timed, and alternates with the others.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "bench/gate_actors.h"
#include "bench/measure.h"
#include "runtime/base/clock.h"
#include "runtime/transport/zmq_wire.h"
#include "tests/support/process.h"

namespace troupe::bench {
namespace {

using runtime::ZmqWire;
using runtime::ZmqWireOptions;

const runtime::SteadyClock kClock;

struct Medium {
  const char* name;
  const char* listen;  // "" in process
  bool shared = false;
};

constexpr Medium kMedia[] = {{"in process", "", false},
                             {"ipc, shared memory", "ipc:///tmp/troupe-bench-gate-", true},
                             {"ipc, inline", "ipc:///tmp/troupe-bench-gate-", false},
                             {"tcp", "tcp://127.0.0.1:0", false}};

ZmqWireOptions options_of(const Medium& medium) {
  ZmqWireOptions options;
  options.clock = &kClock;
  options.shared_memory = medium.shared;
  return options;
}

// The child's whole life: reads the address, sends, and writes what it took.
int produce(const Medium& medium, const GateLoad& load, int addresses, int results) {
  GateRun produced;
  {
    char address[256] = "";
    const ssize_t length = ::read(addresses, address, sizeof(address) - 1);
    if (length <= 0) return 1;
    auto wire = std::move(ZmqWire::open(options_of(medium))).value();
    produced = run_gate_node(load, *wire, address, false);
  }
  const bool told = ::write(results, &produced.core_seconds, sizeof(double)) == sizeof(double);
  return told && produced.complaint.empty() ? 0 : 1;
}

GateRun run_between_processes(const Medium& medium, const GateLoad& load) {
  int addresses[2], results[2];
  CHECK(::pipe(addresses) == 0 && ::pipe(results) == 0, "no descriptors are left");
  // No thread of an earlier run is left, so the child may go on with everything.
  ForkedProcess child([&] { return produce(medium, load, addresses[0], results[1]); });
  ::close(addresses[0]);
  ::close(results[1]);
  GateRun consumed;
  {
    ZmqWireOptions options = options_of(medium);
    options.listen = medium.listen;
    if (!medium.shared && options.listen.starts_with("ipc")) options.listen += "inline-";
    if (options.listen.starts_with("ipc")) options.listen += std::to_string(::getpid());
    auto wire = std::move(ZmqWire::open(options)).value();
    const std::string address = wire->address();
    CHECK(::write(addresses[1], address.data(), address.size()) ==
              static_cast<ssize_t>(address.size()),
          "the child is gone");
    consumed = run_gate_node(load, *wire, address, true);
  }
  double cores = 0;
  if (::read(results[0], &cores, sizeof(cores)) != sizeof(cores)) consumed.complaint = "no result";
  ::close(addresses[1]);
  ::close(results[0]);
  if (child.status() != 0 && consumed.complaint.empty()) consumed.complaint = "the producer failed";
  consumed.core_seconds += cores;
  return consumed;
}

GateRun run(const Medium& medium, const GateLoad& load) {
  return *medium.listen == '\0' ? run_gate_node(load) : run_between_processes(medium, load);
}

void print_line(const Medium& medium, const GateLoad& load, const std::vector<GateRun>& runs) {
  const bool small = load.payload_bytes == 0;
  // Messages in millions, or bytes in GB.
  const double work = static_cast<double>(load.messages) *
                      (small ? 1e-6 : static_cast<double>(load.payload_bytes) * 1e-9);
  std::vector<double> rates, per_core;
  for (const GateRun& one : runs) {
    rates.push_back(work / one.seconds);
    per_core.push_back(work / one.core_seconds);
  }
  const auto [median, low, high] = spread_of(rates);
  fmt::print("  {:<19}{:9.3f} {} (min {:.3f}, max {:.3f}); {:.3f} per core second\n", medium.name,
             median, small ? "million messages/s" : "GB/s", low, high, spread_of(per_core).median);
}

// False: a result was wrong.
bool compare(const GateLoad& load, int repeats) {
  std::vector<std::vector<GateRun>> runs(std::size(kMedia));
  for (int repeat = -1; repeat < repeats; ++repeat) {
    for (std::size_t i = 0; i < std::size(kMedia); ++i) {
      GateLoad round = load;
      round.whole = repeat < 0;
      if (round.whole) round.messages = std::min<std::int64_t>(load.messages, 1000);
      const GateRun result = run(kMedia[i], round);
      if (!result.complaint.empty()) {
        fmt::print(stderr, "{} with payloads of {} bytes: {}\n", kMedia[i].name, load.payload_bytes,
                   result.complaint);
        return false;
      }
      if (!round.whole) runs[i].push_back(result);
    }
  }
  if (load.payload_bytes == 0) {
    fmt::print("small messages, {} credits\n", load.credits);
  } else {
    fmt::print("payloads of {} KiB, {} credits\n", load.payload_bytes >> 10, load.credits);
  }
  for (std::size_t i = 0; i < std::size(kMedia); ++i) print_line(kMedia[i], load, runs[i]);
  std::fflush(stdout);
  return true;
}

int run_all(bool small) {
  const int repeats = small ? 1 : 5;
  bool right = compare({0, 2'000, small ? 10'000 : 300'000, 512}, repeats);
  for (const std::size_t kib : {64u, 1024u, small ? 4u << 10 : 16u << 10}) {
    const std::size_t bytes = kib << 10;
    const std::size_t total = std::size_t{small ? 16u : 1024u} << 20;
    // A plan's usual credits: 8 messages, 64 MiB.
    right &= compare({bytes, 16, static_cast<std::int64_t>(total / bytes), 8}, repeats);
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::run_all(argc > 1 && std::strcmp(argv[1], "--small") == 0);
}
