#pragma once

// Runs a Plan in one process: actors on scheduler threads (or on threads of their own), supervision
// by the ownership tree, bounded shutdown, and a report when nothing moves.
//
//   Node node(plan, make_actor, options, clock, log);
//   NodeEnd end = node.run();   // returns when the root actor has ended, or has been given up
//
// Supervision. An actor that fails ends its subtree: everything below it is asked to stop, and when
// that has ended its owner decides (Actor::child_ended). The root has no owner: its end is the
// node's, its error the node's error.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/actor.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/node/gate.h"
#include "runtime/node/node_options.h"
#include "runtime/plan.h"
#include "runtime/scheduler.h"

namespace troupe::runtime {

// Makes the actor a plan entry asks for; never null. Called in the node's constructor for each
// actor in the plan's order, and again to restart one: then on a scheduler thread, never two at a
// time.
using ActorFactory = std::function<std::unique_ptr<Actor>(const ActorPlan&)>;

struct NodeEnd {
  // The reason why the run failed: the root actor's error, or kInternal for a deadlock, for actors
  // that did not stop or a thread that was refused. None: the root actor finished. It is not in the
  // log yet.
  std::optional<Error> error;
  // Actors given up because they did not end by their deadline or by a second request_stop().
  std::vector<std::string> unstopped;
  // The unstopped actors whose handler was still running. Their threads are abandoned: keep the
  // clock and the log alive and end the process.
  std::vector<std::string> abandoned;
};

struct ActorStats {
  std::string name;
  std::string state;         // "waiting", "queued", "running", "stopping", "ended"
  std::int64_t handled = 0;  // handlers run
};

// The connection of a node to others. The wire and the types outlive the node.
struct Uplink {
  GateOptions gate;
  Wire& wire;
  const WireTypes& types;
  // True: the node drives its gate with a thread of its own. False: the caller calls turn_gate().
  bool own_thread = true;
};

class NodeCore;

class Node {
 public:
  // The plan must pass check(). Clock and log outlive the node. The clock must go on while threads
  // wait (a SteadyClock), unless a scheduler is handed in that moves it.
  Node(const Plan& plan, ActorFactory factory, NodeOptions options, const Clock& clock, Log& log);
  // With a scheduler of the caller's, which outlives the node; see step_scheduler.h.
  Node(const Plan& plan, ActorFactory factory, NodeOptions options, const Clock& clock, Log& log,
       Scheduler& scheduler);
  // One node of several: runs the actors that the plan places on uplink.gate.node, and talks to the
  // others. Every node is given the same plan. Its first node has the last word on a run that is
  // stuck. `scheduler` as above; null: one of its own.
  Node(const Plan& plan, ActorFactory factory, NodeOptions options, const Clock& clock, Log& log,
       const Uplink& uplink, Scheduler* scheduler = nullptr);
  // Only when run() is not running.
  ~Node();

  // Starts every actor, supervises until the end, and returns with no actor alive and no thread
  // running, save those NodeEnd names. Once.
  NodeEnd run();

  // The parts of run(), for a driver that interleaves several nodes on one scheduler: begin() once,
  // then tend() whenever the scheduler has nothing to run or next_due() has come, until it returns
  // true; then end() once. end() before that gives up on all actors at once.
  void begin();
  bool tend();
  TimePoint next_due() const;
  NodeEnd end();

  // For a driver of a node whose gate has no thread: see Gate. From begin() to end().
  void turn_gate(TimePoint until);
  TimePoint gate_due() const;

  // Asks the root actor to stop; a second call gives up on whatever has not ended. Any thread, not
  // from a signal handler.
  void request_stop();

  // Sends a control message from outside (sender kOutside). Undeliverable ones are logged. Any
  // thread.
  void send_control(std::string_view actor, Message message);

  // The wait-for graph: one line per actor, and the culprit. Any thread.
  std::string wait_for_graph() const;
  // In the plan's order. Any thread; also after run().
  std::vector<LinkStats> link_stats() const;
  std::vector<ActorStats> actor_stats() const;
  // A message has the same flow in the record of its sending and in the record of its handling, on
  // whichever nodes these are. Two kinds of messages have no flow: those sent to an earlier process
  // in the place of the plan's first node, and those sent to another node past all links.
  std::vector<ActorTrace> traces() const;
  // Figures of the other nodes that this one has to do with; empty when there are none.
  std::vector<PeerStats> peer_stats() const;

 private:
  std::shared_ptr<NodeCore> core_;
};

}  // namespace troupe::runtime
