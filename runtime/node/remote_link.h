#pragma once

// The two ends of a link whose actors live on different nodes: the sender's end hands messages to
// RemoteLinks, the receiver's end takes its place as their origin, and credits go the other way.
// RemoteOrigin alone is the origin of what an actor elsewhere sends past all links.

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "runtime/message.h"
#include "runtime/node/link.h"

namespace troupe::runtime {

class RemoteLinks;

// The sender's end. The Gate keeps account of what it has been given and what of that it has heard
// of again, so that a lost peer leaves no credit behind.
class RemoteOutlet final : public Outlet {
 public:
  // `link`: position in the plan. `peer`: position among the Gate's peers.
  RemoteOutlet(RemoteLinks& links, std::uint32_t link, std::size_t peer, const LinkPlan& plan,
               Cell& from, PortId port)
      : Outlet(link, plan, from, port), links_(links), link_(link), peer_(peer) {}

  std::uint32_t link() const { return link_; }
  std::size_t peer() const { return peer_; }

  // Counts a message that came back, when its sender has let it go.
  void give_back(std::int64_t bytes) override { credit_back(1, bytes); }
  void count_queued(std::int64_t) override {}
  void meet() override;

  // Any thread: which of the messages between the two processes that meet now the one of this
  // number() is, as the receiver's end counts them; 0: none of them, as far as is known yet.
  std::uint64_t shared_number(std::uint64_t number) const {
    const std::uint64_t first = first_number_.load();
    return first == 0 || number < first ? 0 : number - first + 1;
  }

  // The rest on the Gate's thread.

  // The message of this number() is handed to the wire, and all that follow will be until the link
  // begins anew.
  void leaves(std::uint64_t number) {
    if (first_number_.load() == 0) first_number_.store(number);
  }
  // A message left the sender, and one came back from the receiver with its credit. False: no such
  // message, or not as much, is out that could come back.
  void gone_out(std::int64_t bytes);
  bool come_back(std::int64_t bytes);
  // The receiver has given back that much since the link began. False: more than it ever had.
  bool heard(std::int64_t total_messages, std::int64_t total_bytes);
  // The receiver is over, and what it held is gone; what never reached it has come_back() before.
  void forget();
  // Another process takes the receiver's place, and the link begins there. CHECKs that nothing is
  // out.
  void begin_anew();

 private:
  void pass_on(Message&& message) override;

  RemoteLinks& links_;
  const std::uint32_t link_;
  const std::size_t peer_;
  // The Gate's thread.
  struct Tally {
    std::int64_t messages = 0;
    std::int64_t bytes = 0;
  };
  Tally out_, back_, heard_;
  // The number of the first message that was not bounced since the link began; 0: there was none.
  std::atomic<std::uint64_t> first_number_{0};
};

// What has come from another node.
class RemoteOrigin : public Origin {
 public:
  RemoteOrigin(std::size_t peer, std::string sender, std::string port, std::uint32_t trace_link = 0)
      : Origin(kElsewhere, std::move(sender), std::move(port), trace_link), peer_(peer) {}

  std::size_t peer() const { return peer_; }
  // nullptr: sent past all links.
  virtual const LinkPlan* plan() const { return nullptr; }
  virtual std::uint32_t link() const { return 0; }

  void give_back(std::int64_t) override {}
  void count_queued(std::int64_t) override {}
  bool undelivered() override { return true; }

 private:
  const std::size_t peer_;
};

// The receiver's end.
class RemoteInlet final : public RemoteOrigin, public Inlet {
 public:
  RemoteInlet(RemoteLinks& links, std::uint32_t link, std::size_t peer, const LinkPlan& plan,
              Cell& to)
      : RemoteOrigin(peer, plan.from, plan.to_port, link + 1),
        Inlet(plan, to),
        links_(links),
        link_(link),
        plan_(plan) {}

  const LinkPlan* plan() const override { return &plan_; }
  std::uint32_t link() const override { return link_; }

  void give_back(std::int64_t bytes) override { take_back(bytes); }
  void count_queued(std::int64_t change) override { count_waiting(change); }
  // Those of a metrics link count as dropped where they were sent, by their credit's return.
  bool undelivered() override { return plan_.lane != Lane::kMetrics; }

  // The Gate's thread: a message has come. False: the sender had no credit for it.
  bool take_in(std::int64_t bytes);
  // The Gate's thread: the number() of the message that was taken in last.
  std::uint64_t newest_number() const { return arrived_; }
  // Any thread: see RemoteOutlet.
  std::uint64_t shared_number(std::uint64_t number) const {
    const std::uint64_t before = arrived_before_.load();
    return number <= before ? 0 : number - before;
  }
  // The Gate's thread: a message goes back with its credit.
  void send_back(std::int64_t bytes);
  // The Gate's thread: another process takes the sender's place, and the link begins there. What of
  // the one before is still held here is nobody's credit any more, and goes back to nobody; until
  // it is let go of, neither does what the other one sends.
  void begin_anew();
  // The Gate's thread: such messages are still held.
  bool holds_of_another() const { return given_messages_.load() < 0; }

  // Any thread: given back since the link began; bytes are never behind messages.
  std::pair<std::int64_t, std::int64_t> given_back() const;
  // Any thread; figures may be a moment old.
  LinkStats stats() const;

 private:
  void hand_over(std::int64_t messages, std::int64_t bytes) override;

  RemoteLinks& links_;
  const std::uint32_t link_;
  const LinkPlan plan_;
  std::atomic<std::int64_t> came_messages_{0}, came_bytes_{0};  // less what went back
  // Below 0 by what is held of a process before the one that sends now.
  std::atomic<std::int64_t> given_messages_{0}, given_bytes_{0};
  std::uint64_t arrived_ = 0;                     // messages, ever; the Gate's thread
  std::atomic<std::uint64_t> arrived_before_{0};  // the link began
};

}  // namespace troupe::runtime
