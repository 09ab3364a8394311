#include "runtime/transport/packets.h"

#include <algorithm>
#include <concepts>
#include <span>
#include <utility>

#include "runtime/base/error_fields.h"
#include "runtime/base/fields.h"
#include "runtime/base/utf8.h"
#include "runtime/transport/wire_fields.h"

namespace troupe::runtime {
namespace {

constexpr std::size_t kMostName = kMostNodeName;
constexpr std::size_t kMostAddress = 512;
constexpr std::size_t kMostKey = 64;
constexpr std::size_t kMostText = 16384;
// A list has no more entries: an entry may cost more memory than the packet has bytes for it.
constexpr std::size_t kMostEntries = 4096;
constexpr std::size_t kMostTerms = 64;

// An unknown peer wrote what was read, so it is made fit to be shown. A text that is written stays
// as it is.
void make_printable(std::string& text) { text = printable(text); }
void make_printable(const std::string&) {}

}  // namespace

bool is_node_name(std::string_view text) {
  return !text.empty() && text.size() <= kMostNodeName && printable(text) == text;
}

template <class Archive>
void fields(Archive& archive, Like<Term> auto& term) {
  archive.text("name", term.name, kMostName);
  archive.prose("value", term.value, kMostText);
  make_printable(term.value);
}

template <class Archive>
void introduction_fields(Archive& archive, auto& introduction) {
  archive.words("node", introduction.node, kMostName);
  archive.number("incarnation", introduction.incarnation);
  archive.number("peer_incarnation", introduction.peer_incarnation);
  archive.words("host", introduction.host, kMostName);
  archive.number("pid", introduction.pid);
  archive.words("machine", introduction.machine, kMostName);
  archive.list("terms", introduction.terms, kMostTerms);
  archive.words("address", introduction.address, kMostAddress);
  archive.all("received", introduction.received);
  archive.flag("given_up", introduction.given_up);
}

template <class Archive>
void fields(Archive& archive, Like<Hello> auto& hello) {
  introduction_fields(archive, hello);
}

template <class Archive>
void fields(Archive& archive, Like<Welcome> auto& welcome) {
  introduction_fields(archive, welcome);
}

static const char* fault_of(const Introduction& introduction) {
  return introduction.incarnation == 0 ? "incarnation 0" : nullptr;
}

template <class Archive>
void fields(Archive& archive, Like<Refusal> auto& refusal) {
  archive.object("error", refusal.error);
  make_printable(refusal.error.message);
}

template <class Archive>
void fields(Archive& archive, Like<LinkCredit> auto& credit) {
  archive.number("link", credit.link);
  archive.number("messages", credit.messages, INT64_MAX);
  archive.number("bytes", credit.bytes, INT64_MAX);
}

template <class Archive>
void fields(Archive& archive, Like<Account> auto& account) {
  archive.all("received", account.received);
  archive.list("credits", account.credits, kMostEntries);
}

template <class Archive>
void fields(Archive& archive, Like<Heartbeat> auto& heartbeat) {
  archive.number("progress", heartbeat.progress, INT64_MAX);
  archive.number("load_percent", heartbeat.load_percent);
  archive.number("every_ms", heartbeat.every_ms);
}

template <class Archive>
void fields(Archive& archive, Like<Unheard> auto& unheard) {
  archive.text("node", unheard.node, kMostName);
  archive.number("patience_ms", unheard.patience_ms);
}

template <class Archive>
void fields(Archive&, Like<Bye> auto&) {}

template <class Archive>
void fields(Archive&, Like<GraphRequest> auto&) {}

template <class Archive>
void fields(Archive& archive, Like<ActorWait> auto& actor) {
  archive.prose("name", actor.name, kMostName);
  archive.choice("activity", actor.activity, ActorWait::Activity::kElsewhere);
  archive.flag("stopping", actor.stopping);
  archive.time("running_for", actor.running_for);
  archive.prose("words", actor.words, kMostText);
}

template <class Archive>
void fields(Archive& archive, Like<LinkWait> auto& link) {
  archive.number("from", link.from, kMostEntries);
  archive.number("to", link.to, kMostEntries);
  archive.text("from_port", link.from_port, kMostName);
  archive.text("to_port", link.to_port, kMostName);
  archive.choice("lane", link.lane, static_cast<Lane>(kLanes - 1));
  archive.flag("sender_waits", link.sender_waits);
  archive.integer("messages_out", link.messages_out);
  archive.integer("message_credits", link.message_credits);
  archive.integer("bytes_out", link.bytes_out);
  archive.integer("byte_credits", link.byte_credits);
  archive.integer("queued", link.queued);
}

template <class Archive>
void fields(Archive& archive, Like<GraphAnswer> auto& answer) {
  archive.list("actors", answer.graph.actors, kMostEntries);
  archive.first("links", answer.graph.links, kMostEntries);
}

static const char* fault_of(const GraphAnswer& answer) {
  const std::size_t actors = answer.graph.actors.size();
  const auto leads_nowhere = [actors](const LinkWait& link) {
    return link.from >= actors || link.to >= actors;
  };
  return std::ranges::any_of(answer.graph.links, leads_nowhere) ? "a link of no actor" : nullptr;
}

template <class Archive>
void fields(Archive& archive, Like<Enrolment> auto& enrolment) {
  archive.words("node", enrolment.node, kMostName);
  archive.words("host", enrolment.host, kMostName);
  archive.number("pid", enrolment.pid);
  archive.words("launched", enrolment.launched, kMostName);
}

template <class Archive>
void fields(Archive& archive, Like<HeadRequest> auto& request) {
  archive.choice("kind", request.kind, HeadRequest::Kind::kBurst);
  archive.words("name", request.name, kMostName);
  archive.words("change", request.change, kMostName);
  archive.words("host", request.host, kMostName);
  archive.number("pid", request.pid);
}

template <class Archive>
void fields(Archive& archive, Like<Invitation> auto& invitation) {
  archive.words("node", invitation.node, kMostName);
  archive.attached("contents", invitation.contents);
}

template <class Archive>
void fields(Archive& archive, Like<DirectoryEntry> auto& entry) {
  archive.text("node", entry.node, kMostName);
  archive.text("address", entry.address, kMostAddress);
  archive.text("key", entry.key, kMostKey);
  archive.number("incarnation", entry.incarnation);
  archive.flag("dial", entry.dial);
  archive.flag("ended", entry.ended);
}

template <class Archive>
void fields(Archive& archive, Like<Directory> auto& directory) {
  archive.number("edition", directory.edition);
  archive.list("entries", directory.entries, Directory::kMostEntries);
}

template <class Archive>
void fields(Archive& archive, Like<DirectoryHeard> auto& heard) {
  archive.number("edition", heard.edition);
}

template <class Archive>
void fields(Archive& archive, Like<Wanted> auto& wanted) {
  archive.list("nodes", wanted.nodes, Wanted::kMostNodes,
               [](auto&& names, auto& node) { names.text("", node, kMostName); });
}

template <class Archive>
void fields(Archive& archive, Like<Granted> auto& granted) {
  archive.words("text", granted.text, kMostText);
}

template <class Archive>
void fields(Archive& archive, Like<NotNow> auto& answer) {
  archive.prose("why", answer.why, kMostText);
  make_printable(answer.why);
}

namespace {

// Why a message comes back, and what has arrived where it was.
struct Return {
  Error cause;
  LaneCounts received{};
};

template <class Archive>
void fields(Archive& archive, Like<Return> auto& back) {
  archive.object("cause", back.cause);
  archive.all("received", back.received);
}

// A Label stands in front of an envelope's message, which follows as one value.
struct Label {
  std::uint64_t sequence = 0;
  std::optional<std::uint32_t> link;
  std::string sender, target;
  std::optional<Return> back;
  std::string name;  // of the message's body
  std::uint64_t payloads = 0;
};

template <class Archive>
void fields(Archive& archive, Like<Label> auto& label) {
  archive.number("sequence", label.sequence);
  archive.perhaps("link", label.link);
  archive.text("sender", label.sender, kMostName);
  archive.text("target", label.target, kMostName);
  archive.perhaps("back", label.back);
  archive.text("name", label.name, kMostName);
  archive.number("payloads", label.payloads);
}
constexpr std::size_t kLabelFields = 7;

// A packet's number is its place in AnyPacket, from 1, and is never given another meaning.
template <class Body, std::size_t kPlace = 0>
constexpr std::size_t number_of() {
  using Here = std::variant_alternative_t<kPlace, AnyPacket>;
  if constexpr (std::same_as<Here, Body>) {
    return kPlace + 1;
  } else {
    return number_of<Body, kPlace + 1>();
  }
}

// Without the last actors, and their links, where a node has more of them than a packet takes.
GraphAnswer fitting(GraphAnswer answer) {
  auto& [actors, links] = answer.graph;
  if (actors.size() > kMostEntries) actors.resize(kMostEntries);
  std::erase_if(links, [count = actors.size()](const LinkWait& link) {
    return link.from >= count || link.to >= count;
  });
  return answer;
}

template <class Body>
Packet pack_fields(const Body& body) {
  WireWriter out;
  write_list(out, [&](FieldWriter& writer) {
    writer.number("", number_of<Body>());
    fields(writer, body);
  });
  return {out.take_header(), out.take_attachments()};
}

// A Source is a packet with the reader that stands behind its number.
struct Source {
  WireReader& in;
  std::size_t values;  // behind the packet's number
  const Packet& packet;
  const WireTypes& types;
};

template <class Body>
Result<AnyPacket> read_packet(const Source& source) {
  Body body;
  read_values(source.in, source.values, body);
  if (!source.in.finished()) return Error{ErrorKind::kInternal, source.in.problem()};
  return AnyPacket(std::move(body));
}

// The label and the message are one list. The message's payloads are the first attachments, and its
// fields take those behind them. No room is made for payloads before their number is checked.
template <>
Result<AnyPacket> read_packet<Envelope>(const Source& source) {
  WireReader& in = source.in;
  Label label;
  if (source.values != kLabelFields + 1) in.fail("an envelope with missing or added fields");
  read_values(in, kLabelFields, label);
  if (label.payloads > source.packet.payloads.size()) in.fail("more payloads than there are");
  std::vector<Buffer> payloads(in.ok() ? label.payloads : 0);
  for (Buffer& payload : payloads) payload = in.attachment();
  if (!in.ok()) return Error{ErrorKind::kInternal, in.problem()};
  Envelope envelope;
  envelope.sequence = label.sequence;
  envelope.link = label.link;
  envelope.sender = std::move(label.sender);
  envelope.target = std::move(label.target);
  if (label.back) {
    envelope.cause = std::move(label.back->cause);
    envelope.received = label.back->received;
  }
  ASSIGN_OR_RETURN(envelope.message, source.types.unpack(label.name, in, std::move(payloads)));
  if (!in.finished()) return Error{ErrorKind::kInternal, in.problem()};
  return AnyPacket(std::move(envelope));
}

template <std::size_t... kPlaces>
Result<AnyPacket> read_any(std::size_t place, const Source& source,
                           std::index_sequence<kPlaces...>) {
  using Read = Result<AnyPacket> (*)(const Source&);
  static constexpr Read kReaders[] = {
      read_packet<std::variant_alternative_t<kPlaces, AnyPacket>>...};
  return kReaders[place](source);
}

}  // namespace

Packet pack(const AnyPacket& packet) {
  return std::visit(
      [](const auto& body) {
        using Body = std::remove_cvref_t<decltype(body)>;
        if constexpr (std::same_as<Body, Envelope>) {
          CHECK(false, "an envelope is packed with the types of messages");
          return Packet();
        } else if constexpr (std::same_as<Body, GraphAnswer>) {
          return pack_fields(fitting(body));
        } else {
          return pack_fields(body);
        }
      },
      packet);
}

Packet pack(const Envelope& envelope, const WireTypes& types) {
  const std::span<const Buffer> payloads = envelope.message.payloads();
  Label label{envelope.sequence,
              envelope.link,
              envelope.sender,
              envelope.target,
              {},
              std::string(envelope.message.name()),
              payloads.size()};
  if (envelope.cause) label.back = Return{*envelope.cause, envelope.received};
  WireWriter out;
  out.list(1 + kLabelFields + 1);
  out.number(number_of<Envelope>());
  FieldWriter writer(out);
  writer.inlined(label);
  for (const Buffer& payload : payloads) out.attach(payload);
  types.pack(envelope.message, out);
  return {out.take_header(), out.take_attachments()};
}

Result<AnyPacket> unpack(const Packet& packet, const WireTypes& types) {
  constexpr std::size_t kKinds = std::variant_size_v<AnyPacket>;
  WireReader in(packet.header.bytes(), packet.payloads);
  const std::size_t values = in.list_up_to(kMostValues);
  const std::uint64_t number = in.number(kKinds);
  if (in.ok() && (values == 0 || number == 0)) in.fail("a packet of no kind");
  if (!in.ok()) return Error{ErrorKind::kInternal, in.problem()};
  return read_any(number - 1, {in, values - 1, packet, types}, std::make_index_sequence<kKinds>());
}

}  // namespace troupe::runtime
