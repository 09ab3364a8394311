#pragma once

// An actor: a state machine with a mailbox. It handles one event at a time, never on two threads at
// once, shares nothing with others but Buffers, and never blocks unless the Plan gives it a thread
// of its own. A Node (node.h) runs it.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/trace.h"
#include "runtime/lane.h"
#include "runtime/message.h"

namespace troupe::runtime {

class Cell;

// How an actor's child ended. The child's own children have ended before it.
struct ChildEnd {
  ActorId id;
  std::string name;
  std::optional<Error> error;  // none: it called finish()
  int restarts = 0;            // how often it has been restarted so far
};

// The owner's answer to it.
enum class ChildDecision : std::uint8_t {
  kIgnore,    // goes on without the child; messages to it come back undeliverable
  kRestart,   // the child and all below it are made anew and started; the same as kIgnore when the
              // owner has been asked to stop
  kEscalate,  // the owner fails with the child's error (with a plain one when the child ended well)
};

// The calls an actor may make while one of its handlers runs. Only valid in the handler, on its
// thread.
class Context {
 public:
  explicit Context(Cell& cell) : cell_(cell) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const std::string& name() const;

  // The out port of that name; not valid() when the Plan wires none. Resolve once, in start().
  PortId out(std::string_view out_port) const;
  // All out ports, in the Plan's order; PortId{i} is the i-th. An actor with several peers of one
  // kind has ports such as "batches.0", "batches.1".
  std::span<const std::string> out_ports() const;

  // Sends along a link; the port must be wired. True: moved out, `message` is empty. False: the
  // link lacks credit and `message` is as it was; credit_returned(port) is called once it would
  // fit. A message larger than all byte credits of its link passes when nothing else is on the
  // link. A metrics link never returns false: a message without credit is dropped and counted. A
  // received message may be sent on; its old credit then returns.
  bool send(PortId out_port, Message& message);
  bool send(PortId out_port, Message&& message) { return send(out_port, message); }
  bool send(std::string_view out_port, Message& message) { return send(out(out_port), message); }
  bool send(std::string_view out_port, Message&& message) { return send(out(out_port), message); }

  // True if a message of that many bytes() would be sent now. No call of credit_returned follows.
  bool can_send(PortId out_port, std::int64_t bytes) const;

  // Messages that were sent there and whose credit has not returned.
  std::int64_t in_flight(PortId out_port) const;
  // Sends as if the link had only so many of its message credits, at least 1; until then, all.
  // Where more make room, credit_returned is called as when credit returns.
  void use_credits(PortId out_port, std::int64_t messages);

  // There will be something to send there. Where that is on another node, the two nodes get a
  // connection now, if they have none yet, and not with the first message.
  void meet(PortId out_port);

  // The others go on without the other node's process: it is lost as soon as its connection closes.
  // Then nodes that have met it lose it as well, each when its own connection closes. At the plan's
  // first node.
  void go_on_without(const std::string& node);

  // The other node's process is over: another one may come in its place, called so (process_name()
  // in plan.h). At the plan's first node.
  void await_another(const std::string& node, const std::string& name);

  // Sends to any actor by name, without credits and before its data. Nothing bounds such messages
  // but the sender's own protocol. The message arrives on port "control". It comes back
  // undeliverable from an unknown or ended actor.
  void send_control(std::string_view actor, Message message);

  // Calls timer(id) once, `delay` from now at the earliest. After cancel(id) it is not called; an
  // id that fired or never was is ignored.
  TimerId after(Duration delay);
  void cancel(TimerId id);
  TimePoint now() const;

  // Lines carry the actor's name.
  Log& log();
  // The actor's own ring; see base/trace.h.
  TraceRing& trace();

  // For a handler that runs for long: reports that it makes progress (see
  // NodeOptions::stuck_after).
  void post_progress();
  // For a handler that runs for long: true if stop() waits for it to return.
  bool stopping() const;

  // Take effect when the handler returns; the first counts. The actor is then destroyed, the
  // messages in its mailbox come back undeliverable, and its children are stopped, as no orphan
  // survives its owner. Its owner is told when they have ended.
  void finish();
  void fail(Error error);

  // Number of actors that the plan puts directly below this one.
  int children() const;
  // Asks a child of this actor to stop; child_ended() tells when it has.
  void stop_child(std::string_view name);

 private:
  Cell& cell_;
};

// Handlers run one at a time; an Actor is made, run and destroyed by its node. No handler may
// throw.
class Actor {
 public:
  virtual ~Actor() = default;

  // First of all, once.
  virtual void start(Context&) {}

  // Control, data and metrics alike; message.port() tells the input. FIFO per link. Default: calls
  // the handler that on() has named for the body. A message that none is named for is dropped, and
  // the log says so.
  virtual void receive(Context& context, Message message);

  // A send() on this port failed, and its message would fit now.
  virtual void credit_returned(Context&, std::string_view /*out_port*/) {}

  virtual void timer(Context&, TimerId) {}

  // A sent message could not be delivered because its target ended or does not exist. It still
  // holds its credit. Those on metrics links are counted as dropped instead. Default: a warning in
  // the log.
  virtual void undeliverable(Context& context, Message message, const Error& cause);

  // Asked to stop: bring things to an end and call finish(), now or in a later handler, within the
  // node's shutdown deadline. Called at most once. Default: finish().
  virtual void stop(Context& context);

  // Default: a failure escalates, a good end is ignored.
  virtual ChildDecision child_ended(Context& context, const ChildEnd& end);

  // One line for the wait-for graph: what this actor waits for. Called between handlers, possibly
  // on another thread; must not call the node.
  virtual std::string waiting_for() const { return {}; }

 protected:
  // In start(), one line for each kind of message that the actor takes, the most frequent first:
  //
  //   on<RingBucket>(&Reducer::receive_ring_bucket);
  //
  // The handler gets the body. A handler that wants the sender, the port or the payloads takes the
  // message too; when it moves the message away, the body goes with it.
  template <class Body, class Self>
  void on(void (Self::*handler)(Context&, const Body&)) {
    add(Message::kind_of<Body>(), [handler](Actor& self, Context& context, Message& message) {
      (static_cast<Self&>(self).*handler)(context, *std::as_const(message).as<Body>());
    });
  }
  template <class Body, class Self>
  void on(void (Self::*handler)(Context&, const Body&, Message&)) {
    add(Message::kind_of<Body>(), [handler](Actor& self, Context& context, Message& message) {
      (static_cast<Self&>(self).*handler)(context, *std::as_const(message).as<Body>(), message);
    });
  }

 private:
  using Handler = std::function<void(Actor& self, Context& context, Message& message)>;
  void add(Message::Kind kind, Handler handler) {
    handlers_.emplace_back(kind, std::move(handler));
  }

  std::vector<std::pair<Message::Kind, Handler>> handlers_;  // few: searched from the front
};

}  // namespace troupe::runtime
