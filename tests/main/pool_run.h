#pragma once

// A run that gets nodes from pools: the made cloud of processes, and what tests of every pool need.

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "runtime/base/descriptor.h"
#include "tests/main/cluster_run.h"
#include "tests/support/stride.h"

namespace troupe {

class PoolRun : public ClusterRun {
 protected:
  std::string address() const { return fmt::format("{}:{}", host_, port_); }
  Words listening() const { return {"--set", "cluster.listen=" + address()}; }
  // A pool of the made cloud.
  Words cloud_pool(int nodes, const std::string& more = "") const {
    const std::string cloud = fmt::format("{} {}", TROUPE_MADE_CLOUD, path("cloud"));
    return listening() +
           Words{"--set", fmt::format("cluster.pools=[{{name: own, launcher: command, nodes: {}, "
                                      "most: 4, start: '{} up {{name}} {{join}}', stop: '{} down "
                                      "{{name}}', list: '{} ls'{}}}]",
                                      nodes, cloud, cloud, cloud, more)};
  }
  ProcessEnd burst(const std::string& nodes, const std::string& pool = "own",
                   const Words& more = {}) const {
    return call(Words{"burst", address(), pool, nodes} + more);
  }
  // Waits until so many nodes of the pool have this state.
  bool wait_until(Process& process, const std::string& pool, std::size_t count,
                  const std::string& state) const {
    return process.wait_until([&] {
      std::size_t found = 0;
      for (const auto& [name, node] : nodes()) {
        found += name.starts_with(pool + ".") && node.state == state ? 1 : 0;
      }
      return found >= count;
    });
  }
  std::string pools(const Words& more = {}) const {
    const ProcessEnd end = call(Words{"pools", path("a")} + more);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return end.out;
  }

  // A run without an end, and its end. In ./dev test --slow it goes on to the bits of an
  // undisturbed run, and no line of its metrics is dropped; both take as long again as the run
  // took.
  static bool is_thorough() { return stride(2) == 1; }
  Words endless(const Words& more) const {
    const Words all = kEndlessRun + Words{"--workers", "1"} + more;
    return run_words(
        "a",
        is_thorough() ? all : Words(all.begin(), all.begin() + 4) + more + Words{"--workers", "1"});
  }
  void end(Process& process, const Words& resumed_with = {}) const {
    if (is_thorough()) return stop_and_expect_whole(process, resumed_with);
    EXPECT_EQ(stop(process).exit_code, 128 + SIGTERM);
  }

  // Supervisor, head and the run's own members. The head holds the run's folder until its files are
  // closed, a moment after it has left the list of processes.
  void kill_whole(Process& process) const {
    process.send(SIGKILL);
    process.wait();
    EXPECT_TRUE(wait_for([&] {
      const runtime::Descriptor lock(::open(path("a/.lock").c_str(), O_RDONLY | O_CLOEXEC));
      return lock.is_open() && ::flock(lock.number(), LOCK_SH | LOCK_NB) == 0;
    })) << "the head goes on";
  }

  std::string host_ = "127.0.0.1";
  const std::uint16_t port_ = free_port();
};

}  // namespace troupe
