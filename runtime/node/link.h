#pragma once

// A credit-bounded edge between two actors of one process: the sender's thread delivers into the
// receiver's mailbox.

#include "runtime/node/inlet.h"
#include "runtime/node/outlet.h"

namespace troupe::runtime {

class Link final : public Outlet, public Inlet {
 public:
  // See Outlet and Inlet.
  Link(std::uint32_t link, const LinkPlan& plan, Cell& from, PortId port, Cell& to);

  // See Origin.
  void give_back(std::int64_t bytes) override { take_back(bytes); }
  void count_queued(std::int64_t change) override { count_waiting(change); }

  // Any thread; figures may be a moment old.
  LinkStats stats() const;

 private:
  void pass_on(Message&& message) override;
  void hand_over(std::int64_t messages, std::int64_t bytes) override {
    credit_back(messages, bytes);
  }
};

}  // namespace troupe::runtime
