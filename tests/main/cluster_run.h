#pragma once

// The toy topology over several processes, and the processes of such a run as the system sees them.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/main/toy_run.h"

namespace troupe {

// The entry of one node in nodes.json.
struct NodeLine {
  pid_t pid = 0;
  std::string state, cause;
};

class ClusterRun : public ToyRun {
 protected:
  static constexpr const char* kMark = "TROUPE_TEST_FOLDER";

  // Every process that is started from here on, and theirs, can be told by the mark of this folder
  // in its environment.
  ClusterRun();
  // No process of the test may be left, whatever it did to them.
  void TearDown() override;

  // The command lines, by process id, of processes that carry the mark and have not ended.
  std::map<pid_t, std::string> processes() const;
  // The one whose words contain `words`; 0 if there is none.
  pid_t process_with(const std::string& words) const;
  pid_t member(int number) const;
  pid_t head() const { return process_with("--head-at"); }
  // Whether all end soon.
  bool all_gone() const;

  // The files of a run.
  std::map<std::string, NodeLine> nodes(const std::string& name = "a") const;
  std::string log(const std::string& name = "a") const;
  // How often metrics.jsonl says `what`.
  std::size_t count(const std::string& what, const std::string& name = "a") const;
  std::size_t steps(const std::string& name = "a") const;
  // Wait until metrics.jsonl or log.txt says `what`. False: the process has ended, or it takes too
  // long.
  bool wait_until_told(Process& process, const std::string& what,
                       const std::string& name = "a") const;
  bool wait_until_said(Process& process, const std::string& what,
                       const std::string& name = "a") const;
  // The port of the run's page, as soon as its log tells it for the n-th time. 0: it does not, and
  // the test fails.
  std::uint16_t page_port(Process& process, const std::string& name = "a", int n = 1) const;
  // Waits until the run has made so many steps, or fails the test.
  void wait_until_training(Process& process, std::size_t steps = 20,
                           const std::string& name = "a") const;
  // Kills the head of run "a", and waits until the members have gone on with another one.
  void replace_head(Process& process) const;

  // Stops a run that trains, which saves its state.
  ProcessEnd stop(Process& process) const;
  // Run "a", which has ended in any way, goes on to the hash of a run of one
  // process that nothing happened to, and has made every step once. `more` is what both set
  // differently from the toy topology; `resumed_with` is for the one that goes on.
  void expect_goes_on(const Words& resumed_with = {}, const Words& more = {},
                      std::uint64_t events_per_step = 16) const;
  // Both of them.
  void stop_and_expect_whole(Process& process, const Words& more = {},
                             std::uint64_t events_per_step = 16) const;

  // Run "a" of five members that is set so, of whom one dies and is replaced, another one joins,
  // and one leaves, and whose head is lost: it comes to the bits of one process with `order`
  // besides.
  void expect_five_members_whole(const Words& words, const Words& order,
                                 std::uint64_t events_per_step) const;

  // A port of this host that is free, with the three that follow it.
  static std::uint16_t free_port();
  // Makes path(NAME), and lets in the key of each of the others.
  std::string make_keys(const std::string& name) const;
  void let_in(const std::string& keys, const std::string& other) const;
  std::string public_key(const std::string& keys) const;
  // A head alone, whose members are started by hand: it listens at `address`.
  Words head_words(const std::string& name, const std::string& address, int members,
                   const Words& more = {}) const;
  // `troupe join` with these words.
  static std::unique_ptr<Process> join(const Words& words, const ProcessOptions& options = {});
};

// Without an end: a test stops it at a step, not at a time. No line of its metrics is dropped,
// however busy the machine is.
inline const Words kEndlessRun{
    "--set", "train.epochs=1000000",
    "--set", "actors.checkpointer={every: 3 iterations, keep: 3}",
    "--set", "links=[{from: replica, to: monitor, credits: 100000, bytes: 100 MiB}]"};

// Micro-batches share the statistics of all of the toy's batch norms.
inline const Words kSharedNorms{"--set", "model.generator.layers.3={batch_norm: {sync: true}}",
                                "--set", "model.discriminator.layers.2={batch_norm: {sync: true}}"};

// A head that takes the place of another gives its members 2 * dead_after + 1 s to come back. On a
// machine that is busy with other work 5 s may pass before they do, and it would go on without
// them.
inline const Words kUnhurried{"--set", "cluster.failure.dead_after=10s"};

}  // namespace troupe
