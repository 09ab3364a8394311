#include "runtime/node/link.h"

#include <utility>

#include "runtime/node/cell.h"
#include "runtime/node/node.h"

namespace troupe::runtime {

Link::Link(std::uint32_t link, const LinkPlan& plan, Cell& from, PortId port, Cell& to)
    : Outlet(link, plan, from, port), Inlet(plan, to) {}

void Link::pass_on(Message&& message) { to().deliver(std::move(message), plan().lane); }

LinkStats Link::stats() const {
  LinkStats stats = sending_stats();
  add_receiving_stats(stats);
  return stats;
}

}  // namespace troupe::runtime
