#include "tests/sim/packet_checker.h"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::sim {

using runtime::Account;
using runtime::AnyPacket;
using runtime::Envelope;
using runtime::Hello;
using runtime::Welcome;

namespace {

const char* lane_name(Lane lane) {
  static constexpr std::array<const char*, runtime::kLanes> kNames = {"control", "data", "metrics"};
  return kNames[static_cast<std::size_t>(lane)];
}

std::string words(const runtime::LaneCounts& counts) {
  return fmt::format("{} {} {}", counts[0], counts[1], counts[2]);
}

std::string words(const AnyPacket& packet) {
  static constexpr std::array<const char*, std::variant_size_v<AnyPacket>> kNames = {
      "hello",           "welcome",       "refusal",   "account",    "heartbeat", "bye",
      "graph request",   "graph answer",  "enrolment", "invitation", "envelope",  "directory",
      "directory heard", "drain request", "drained",   "not now",    "wanted",    "unheard"};
  std::string text = kNames.at(packet.index());
  if (const auto* envelope = std::get_if<Envelope>(&packet)) {
    text += fmt::format(" {} '{}'", envelope->sequence, envelope->message.name());
    if (envelope->link) text += fmt::format(" of link {}", *envelope->link);
    if (envelope->cause) text += " coming back";
  } else if (const auto* account = std::get_if<Account>(&packet)) {
    text += fmt::format(" of {}", words(account->received));
    for (const runtime::LinkCredit& credit : account->credits) {
      text += fmt::format(", link {}: {}", credit.link, credit.messages);
    }
  } else if (const auto* hello = std::get_if<Hello>(&packet)) {
    text += fmt::format(" of {}", words(hello->received));
  } else if (const auto* welcome = std::get_if<Welcome>(&packet)) {
    text += fmt::format(" of {}", words(welcome->received));
  } else if (const auto* directory = std::get_if<runtime::Directory>(&packet)) {
    for (const runtime::DirectoryEntry& entry : directory->entries) {
      text += fmt::format(" {}{}", entry.node,
                          entry.ended              ? " (ended)"
                          : entry.dial             ? " (dial)"
                          : entry.incarnation == 0 ? " (to come)"
                                                   : "");
    }
  } else if (const auto* refusal = std::get_if<runtime::Refusal>(&packet)) {
    text += ": " + refusal->error.message;
  }
  return text;
}

}  // namespace

void PacketChecker::fail(const Passage& passage, const std::string& what) {
  fail_(fmt::format("process {} to {}, {} lane: {}", passage.from, passage.to,
                    lane_name(passage.lane), what));
}

void PacketChecker::tell(ProcessId at, const Passage& passage, const char* what,
                         const AnyPacket& read) {
  if (!trace_) return;
  trace_(at, fmt::format("{} #{} {} {}", what, passage.connection.number, lane_name(passage.lane),
                         words(read)));
}

void PacketChecker::connected(ConnectionId connection, ProcessId at, ProcessId other) {
  if (trace_) trace_(at, fmt::format("#{} is connected with process {}", connection.number, other));
}

void PacketChecker::ended(ConnectionId connection, ProcessId at, ProcessId other,
                          const std::string& why) {
  if (trace_) {
    trace_(at, fmt::format("#{} with process {} is over: {}", connection.number, other, why));
  }
}

void PacketChecker::sent(const Passage& passage) {
  const auto read = runtime::unpack(*passage.packet, types_);
  if (!read.ok()) {
    fail(passage, "a packet that cannot be read: " + read.error().message);
    return;
  }
  tell(passage.from, passage, "<", *read);
  if (const auto* envelope = std::get_if<Envelope>(&*read)) {
    sent_envelope(passage, *envelope);
  } else if (const auto* account = std::get_if<Account>(&*read)) {
    check_received(passage, account->received);
  } else if (const auto* welcome = std::get_if<Welcome>(&*read)) {
    check_received(passage, welcome->received);
    welcomed_[{passage.from, passage.to}] = passage.connection;
  } else if (const auto* hello = std::get_if<Hello>(&*read)) {
    check_received(passage, hello->received);
  }
}

// What the sender says has arrived from the other end.
void PacketChecker::check_received(const Passage& passage, const runtime::LaneCounts& received) {
  const runtime::LaneCounts& there = delivered_[{passage.to, passage.from}];
  if (received == there) return;
  fail(passage,
       fmt::format("it says that {} have arrived, and {} have", words(received), words(there)));
}

void PacketChecker::sent_envelope(const Passage& passage, const Envelope& envelope) {
  std::uint64_t& last = sent_[{passage.from, passage.to}][static_cast<std::size_t>(passage.lane)];
  if (envelope.sequence <= last) return;  // again
  if (envelope.sequence != last + 1) {
    fail(passage, fmt::format("{} was sent after {}", envelope.sequence, last));
  }
  last = envelope.sequence;
  if (!envelope.link) return;
  const runtime::LinkPlan& link = links_of_plan_.at(*envelope.link);
  if (link.lane != passage.lane) fail(passage, "a message of another lane");
  if (envelope.cause) return;
  LinkBook& book = links_[*envelope.link];
  const auto bytes = static_cast<std::uint64_t>(envelope.message.bytes());
  const std::uint64_t out = book.messages - book.back_messages;
  const std::uint64_t bytes_out = book.bytes - book.back_bytes;
  const bool fits = out < static_cast<std::uint64_t>(link.message_credits) &&
                    bytes_out + bytes <= static_cast<std::uint64_t>(link.byte_credits);
  if (out > 0 && !fits) {
    fail(passage, fmt::format("{} messages of link {} are under way, and one more is sent", out,
                              *envelope.link));
  }
  ++book.messages;
  book.bytes += bytes;
}

void PacketChecker::delivered_envelope(const Passage& passage, const Envelope& envelope) {
  std::uint64_t& last =
      delivered_[{passage.from, passage.to}][static_cast<std::size_t>(passage.lane)];
  if (envelope.sequence <= last) return;
  if (envelope.sequence != last + 1) {
    fail(passage, fmt::format("{} came after {}", envelope.sequence, last));
  }
  last = envelope.sequence;
  if (!envelope.link) return;
  LinkBook& book = links_[*envelope.link];
  if (!envelope.cause) {
    ++book.arrived;
    return;
  }
  --book.messages;
  --book.arrived;
  book.bytes -= static_cast<std::uint64_t>(envelope.message.bytes());
}

void PacketChecker::delivered(const Passage& passage) {
  const auto read = runtime::unpack(*passage.packet, types_);
  if (!read.ok()) return;
  tell(passage.to, passage, ">", *read);
  const auto welcomed = welcomed_.find({passage.to, passage.from});
  const bool of_another = welcomed != welcomed_.end() && passage.connection != welcomed->second;
  // One that introduces itself again is about to be welcomed.
  if (of_another && !std::holds_alternative<Hello>(*read)) {
    fail(passage, fmt::format("a packet of connection {} is taken, but {} has replaced it",
                              passage.connection.number, welcomed->second.number));
  }
  if (const auto* envelope = std::get_if<Envelope>(&*read)) {
    delivered_envelope(passage, *envelope);
  } else if (const auto* account = std::get_if<Account>(&*read)) {
    for (const runtime::LinkCredit& credit : account->credits) {
      LinkBook& book = links_[credit.link];
      if (credit.messages > book.arrived) fail(passage, "more is given back than has arrived");
      book.back_messages = std::max(book.back_messages, credit.messages);
      book.back_bytes = std::max(book.back_bytes, credit.bytes);
    }
  }
}

}  // namespace troupe::sim
