#include "tests/sim/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace troupe::sim {

using runtime::Buffer;
using runtime::Message;

const runtime::WireTypes& item_types() {
  static const runtime::WireTypes kTypes = [] {
    runtime::WireTypes types;
    types.add<Item>();
    types.add<EndNow>();
    return types;
  }();
  return kTypes;
}

namespace {

std::uint64_t start_of(const Item& item) {
  return runtime::mix64(item.number ^ (std::uint64_t{item.link} << 40));
}

}  // namespace

Buffer contents_of(const Item& item, std::size_t most) {
  const std::uint64_t start = start_of(item);
  std::vector<std::uint64_t> words(start % (most / 8 + 1));
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = runtime::mix64(start + i);
  return Buffer::copy_of(std::as_bytes(std::span(words)));
}

bool are_contents_of(const Item& item, std::span<const std::byte> bytes) {
  const std::uint64_t start = start_of(item);
  if (bytes.size() % sizeof(std::uint64_t) != 0) return false;
  for (std::size_t i = 0; i < bytes.size() / sizeof(std::uint64_t); ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i * sizeof word, sizeof word);
    if (word != runtime::mix64(start + i)) return false;
  }
  return true;
}

Ledger::Ledger(World& world, const runtime::Plan& plan) : world_(world) {
  const std::vector<std::string> nodes = runtime::nodes_of(plan);
  const auto process_of = [&](const std::string& actor) {
    const auto found = std::find_if(plan.actors.begin(), plan.actors.end(),
                                    [&](const auto& entry) { return entry.name == actor; });
    return static_cast<ProcessId>(
        std::distance(nodes.begin(), std::find(nodes.begin(), nodes.end(), found->node)));
  };
  for (const runtime::LinkPlan& link : plan.links) {
    books_.emplace_back();
    books_.back().plan = link;
    books_.back().from = process_of(link.from);
    books_.back().to = process_of(link.to);
  }
}

std::string Ledger::name(const LinkBook& book, std::uint64_t number) const {
  return fmt::format("item {} of {}.{} -> {}", number, book.plan.from, book.plan.from_port,
                     book.plan.to);
}

void Ledger::fail(std::string what) {
  failures_.push_back(std::move(what));
  world_.stop();
}

Ledger::Entry& Ledger::entry(std::uint32_t link, std::uint64_t number) {
  return books_.at(link).entries.at(number - 1);
}

Message Ledger::make(std::uint32_t link, std::size_t most) {
  LinkBook& book = books_.at(link);
  book.entries.emplace_back();
  const Item item{link, book.entries.size()};
  return Message::of(item, {contents_of(item, most)});
}

void Ledger::check_credit(const LinkBook& book, std::int64_t bytes) {
  if (book.messages_out == 0) return;
  const bool fits = book.messages_out < book.plan.message_credits &&
                    book.bytes_out + bytes <= book.plan.byte_credits;
  if (fits || parted(book)) return;
  fail(fmt::format("{} was sent without credit: {} messages and {} bytes were out",
                   name(book, book.entries.size()), book.messages_out, book.bytes_out));
}

void Ledger::accepted(std::uint32_t link, std::uint64_t number, std::int64_t bytes) {
  LinkBook& book = books_.at(link);
  Entry& sent = entry(link, number);
  sent.accepted = true;
  sent.bytes = bytes;
  ++book.taken;
  // Those of a metrics link may have been dropped at once, which only the link knows.
  if (book.plan.lane == Lane::kMetrics) return;
  check_credit(book, bytes);
  ++book.messages_out;
  book.bytes_out += bytes;
  ++book.open;
}

void Ledger::received(const Message& message) {
  const Item& item = *message.as<Item>();
  LinkBook& book = books_.at(item.link);
  Entry& got = entry(item.link, item.number);
  ++arrived_;
  if (got.received) fail(name(book, item.number) + " arrived twice");
  if (!got.accepted) fail(name(book, item.number) + " arrived without having been sent");
  if (book.receiver_ended) fail(name(book, item.number) + " arrived at an ended actor");
  if (item.number <= book.last_received) fail(name(book, item.number) + " arrived out of order");
  if (message.port() != book.plan.to_port || message.sender_name() != book.plan.from) {
    fail(fmt::format("{} arrived on port {} as from {}", name(book, item.number), message.port(),
                     message.sender_name()));
  }
  const bool intact = message.bytes() == got.bytes && message.payloads().size() == 1 &&
                      are_contents_of(item, message.payloads().front().bytes());
  if (!intact) fail(name(book, item.number) + " arrived with other contents");
  book.last_received = std::max(book.last_received, item.number);
  got.received = true;
  if (book.plan.lane != Lane::kMetrics && !got.returned) --book.open;
}

void Ledger::returned(const Message& message) {
  const Item& item = *message.as<Item>();
  LinkBook& book = books_.at(item.link);
  Entry& got = entry(item.link, item.number);
  ++came_back_;
  if (got.returned) fail(name(book, item.number) + " came back twice");
  if (!got.accepted) fail(name(book, item.number) + " came back without having been sent");
  if (book.plan.lane == Lane::kMetrics) fail(name(book, item.number) + " came back, not dropped");
  if (book.sender_ended) fail(name(book, item.number) + " came back to an ended actor");
  got.returned = true;
  if (!got.received) --book.open;
}

void Ledger::let_go(std::uint32_t link, std::uint64_t number) {
  LinkBook& book = books_.at(link);
  Entry& gone = entry(link, number);
  if (gone.let_go || book.plan.lane == Lane::kMetrics) return;
  gone.let_go = true;
  --book.messages_out;
  book.bytes_out -= gone.bytes;
}

void Ledger::ended(const std::string& actor) {
  for (LinkBook& book : books_) {
    if (book.plan.from == actor) book.sender_ended = true;
    if (book.plan.to == actor) book.receiver_ended = true;
  }
}

bool Ledger::settled(const LinkBook& book) const {
  return book.sender_ended || book.open == 0 || parted(book);
}

bool Ledger::settled(const std::string& sender) const {
  return std::all_of(books_.begin(), books_.end(), [&](const LinkBook& book) {
    return book.plan.from != sender || settled(book);
  });
}

bool Ledger::all_settled() const {
  return std::all_of(books_.begin(), books_.end(), [&](const LinkBook& book) {
    const bool sent = book.taken >= book.expected || book.sender_ended || parted(book);
    return sent && settled(book);
  });
}

std::string Ledger::unsettled() const {
  std::string text;
  for (const LinkBook& book : books_) {
    if (settled(book) && book.taken >= book.expected) continue;
    text += fmt::format("; {}.{} -> {}: {} of {} sent, {} on their way", book.plan.from,
                        book.plan.from_port, book.plan.to, book.taken, book.expected, book.open);
  }
  return text;
}

void Ledger::check_link(const LinkBook& book) {
  const bool may_lose = book.plan.lane == Lane::kMetrics || book.sender_ended || parted(book);
  for (std::size_t i = 0; i < book.entries.size(); ++i) {
    const Entry& entry = book.entries[i];
    if (entry.received && entry.returned && !parted(book)) {
      fail(name(book, i + 1) + " arrived, and came back");
    }
    if (entry.accepted && !entry.received && !entry.returned && !may_lose) {
      fail(name(book, i + 1) + " was lost");
    }
  }
}

void Ledger::check_stats() {
  for (ProcessId id = 0; id < world_.processes(); ++id) {
    if (!world_.has_node(id)) continue;
    for (const runtime::LinkStats& stats : world_.node(id).link_stats()) {
      const std::string link =
          fmt::format("{} -> {}, seen from {}", stats.plan.from, stats.plan.to, world_.name(id));
      if (stats.max_queued > stats.plan.message_credits) {
        fail(fmt::format("{} messages of {} waited", stats.max_queued, link));
      }
      if (stats.in_use_messages != 0 || stats.in_use_bytes != 0) {
        fail(fmt::format("{} messages and {} bytes of credit of {} never came back",
                         stats.in_use_messages, stats.in_use_bytes, link));
      }
    }
  }
}

void Ledger::check_end() {
  for (const LinkBook& book : books_) check_link(book);
  check_stats();
}

}  // namespace troupe::sim
