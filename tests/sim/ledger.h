#pragma once

// What really happened to every message of a simulated run, told by the actors that sent and
// received them, and what should not have: the checks know nothing of the code under test.
//
//   - A message arrives once or comes back once; not both, and never neither, unless one of the two
//     nodes was killed or gave the other up, or its sender has ended.
//   - Messages of one link arrive in the order in which they were sent, with their contents.
//   - A sender never has more out than its link has credits for.
//   - An actor that has ended receives nothing.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/message.h"
#include "runtime/plan.h"
#include "runtime/transport/wire_types.h"
#include "tests/sim/world.h"

namespace troupe::sim {

// What the actors of a simulated run send each other, with one payload that follows from the
// number.
struct Item {
  static constexpr std::string_view kName = "item";
  std::uint32_t link = 0;  // position in the plan
  std::uint64_t number = 0;
};
template <class Archive>
void fields(Archive& archive, runtime::Like<Item> auto& item) {
  archive.number("link", item.link);
  archive.number("number", item.number);
}

// What a root tells another one, past all links: end now.
struct EndNow {
  static constexpr std::string_view kName = "end-now";
};
template <class Archive>
void fields(Archive&, runtime::Like<EndNow> auto&) {}

// Knows both.
const runtime::WireTypes& item_types();

// The payload of an item: up to `most` bytes, a multiple of 8.
runtime::Buffer contents_of(const Item& item, std::size_t most);
// Whether the bytes may be an item's, of whatever length.
bool are_contents_of(const Item& item, std::span<const std::byte> bytes);

class Ledger {
 public:
  // The world and the plan outlive the ledger; processes are numbered as the plan's nodes are.
  Ledger(World& world, const runtime::Plan& plan);

  // So many items will be made for the link, unless its sender ends before.
  void expect(std::uint32_t link, std::uint64_t items) { books_.at(link).expected = items; }
  // The next item of the link, with a payload of up to `most` bytes.
  runtime::Message make(std::uint32_t link, std::size_t most);
  // It was taken by send(). Call it right after.
  void accepted(std::uint32_t link, std::uint64_t number, std::int64_t bytes);
  void received(const runtime::Message& message);
  void returned(const runtime::Message& message);
  // The receiver, or the sender of what came back, let it go.
  void let_go(std::uint32_t link, std::uint64_t number);
  // The actor has ended, or its node was killed.
  void ended(const std::string& actor);

  // Whether nothing of what the actor sent is still on its way.
  bool settled(const std::string& sender) const;
  // Whether everything that is expected was sent, and nothing is still on its way.
  bool all_settled() const;
  // What is not settled, for people.
  std::string unsettled() const;

  // What can only be said when the world has come to its end.
  void check_end();

  void fail(std::string what);
  const std::vector<std::string>& failures() const { return failures_; }
  std::int64_t arrived() const { return arrived_; }
  std::int64_t came_back() const { return came_back_; }

 private:
  struct Entry {
    std::int64_t bytes = 0;
    bool accepted = false;
    bool received = false;
    bool returned = false;
    bool let_go = false;
  };
  struct LinkBook {
    runtime::LinkPlan plan;
    ProcessId from = 0, to = 0;
    std::vector<Entry> entries;  // by number, from 1
    std::uint64_t last_received = 0;
    std::int64_t messages_out = 0, bytes_out = 0;
    std::uint64_t open = 0;      // accepted, neither received nor returned
    std::uint64_t taken = 0;     // accepted
    std::uint64_t expected = 0;  // at least so many will be
    bool sender_ended = false, receiver_ended = false;
  };

  Entry& entry(std::uint32_t link, std::uint64_t number);
  void check_credit(const LinkBook& book, std::int64_t bytes);
  void check_link(const LinkBook& book);
  void check_stats();
  bool settled(const LinkBook& book) const;
  bool parted(const LinkBook& book) const { return world_.parted(book.from, book.to); }
  std::string name(const LinkBook& book, std::uint64_t number) const;

  World& world_;
  std::vector<LinkBook> books_;
  std::vector<std::string> failures_;
  std::int64_t arrived_ = 0, came_back_ = 0;
};

}  // namespace troupe::sim
