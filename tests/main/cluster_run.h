#pragma once

// The toy topology over several processes, and the processes of such a run as the system sees them.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/main/toy_run.h"

namespace troupe {

// What nodes.json says of one node.
struct NodeLine {
  pid_t pid = 0;
  std::string state, cause;
};

class ClusterRun : public ToyRun {
 protected:
  // Every process that is started from here on, and theirs, can be told by the mark of this folder
  // in its environment.
  ClusterRun();
  // No process of the test may be left, whatever it did to them.
  void TearDown() override;

  // Waits for the condition as long as the process runs; false: it has ended, or half a minute has
  // passed.
  static bool wait_until(Process& process, const std::function<bool()>& condition);
  // Of processes that carry the mark and have not ended; by process id, words separated by blanks.
  std::map<pid_t, std::string> processes() const;
  // The one whose words contain `words`; 0 if there is none.
  pid_t process_with(const std::string& words) const;
  pid_t member(int number) const;
  pid_t head() const { return process_with("--head-at"); }
  // Whether all end within half a minute.
  bool all_gone() const;

  std::map<std::string, NodeLine> nodes(const std::string& name) const;
  // Steps in metrics.jsonl of the run.
  std::size_t steps(const std::string& name) const;
  // Waits until the run has trained for a moment.
  void wait_until_training(Process& process, const std::string& name, std::size_t steps = 20) const;

  // How often metrics.jsonl of the run says `what`.
  std::size_t count(const std::string& name, const std::string& what) const;
  // Waits until metrics.jsonl of the run says `what`.
  bool wait_until_told(Process& process, const std::string& name, const std::string& what) const;

  // Stops a run that trains, which saves its state.
  ProcessEnd stop(Process& process) const;
  // Whatever has happened to run "a", which has ended, it goes on to the hash of a run of one
  // process that nothing happened to, and has made every step once. `more` is what both set
  // differently from the toy topology; `resumed_with` is for the one that goes on.
  void expect_goes_on(const Words& resumed_with = {}, const Words& more = {},
                      std::uint64_t events_per_step = 16) const;
  // Both of them.
  void stop_and_expect_whole(Process& process, const Words& more = {},
                             std::uint64_t events_per_step = 16) const;

  // A port of this host that is free, with the three that follow it.
  static std::uint16_t free_port();
  // Makes path(NAME), and lets in the key of each of the others.
  std::string make_keys(const std::string& name) const;
  void let_in(const std::string& keys, const std::string& other) const;
  std::string public_key(const std::string& keys) const;
  // A head alone, whose members are started by hand: it listens at `address`.
  Words head_words(const std::string& name, const std::string& address, int members,
                   const Words& more = {}) const;
};

// Without an end: a test stops it at a step, not at a time. No line of its metrics is dropped,
// however busy the machine is.
inline const Words kEndlessRun{
    "--set", "train.epochs=1000000",
    "--set", "actors.checkpointer={every: 3 iterations, keep: 3}",
    "--set", "links=[{from: replica, to: monitor, credits: 100000, bytes: 100 MiB}]"};

// Which ends after so many iterations.
Words until_iteration(std::uint64_t iterations, Words more = {});

}  // namespace troupe
