#include "runtime/transport/packets.h"

#include <utility>

#include <fmt/format.h>

#include "runtime/base/utf8.h"
#include "runtime/transport/node_name.h"
#include "runtime/transport/wire_error.h"

namespace troupe::runtime {
namespace {

// In the order of AnyPacket, from 1. Numbers are never given another meaning.
enum class Kind : std::uint8_t {
  kHello = 1,
  kWelcome,
  kRefusal,
  kAccount,
  kHeartbeat,
  kBye,
  kGraphRequest,
  kGraphAnswer,
  kEnrolment,
  kInvitation,
  kParcel,
  kDirectory,
  kDirectoryHeard,
  kDrainRequest,
  kDrained,
  kNotNow,
};
constexpr std::uint64_t kLastKind = static_cast<std::uint64_t>(Kind::kNotNow);

constexpr std::size_t kMostName = kMostNodeName;
constexpr std::size_t kMostAddress = 512;
constexpr std::size_t kMostKey = 64;
constexpr std::size_t kMostText = 16384;
// Of a list: what one costs in memory is then small, however short it is in the packet.
constexpr std::size_t kMostEntries = 4096;

void begin(WireWriter& out, Kind kind, std::size_t fields) {
  out.list(fields + 1);
  out.number(static_cast<std::uint64_t>(kind));
}

Packet finish(WireWriter& out) { return {out.take_header(), out.take_attachments()}; }

// Longer than anything people would read is cut.
void put_text(WireWriter& out, std::string_view text) { out.text(text.substr(0, kMostText)); }

void put(WireWriter& out, const LaneCounts& counts) {
  out.list(counts.size());
  for (const std::uint64_t count : counts) out.number(count);
}

void get(WireReader& in, LaneCounts& counts) {
  in.list(counts.size());
  for (std::uint64_t& count : counts) count = in.number();
}

// What messages quote of whoever is at the other end, and need not know yet.
std::string get_words(WireReader& in, std::size_t most) { return printable(in.text(most)); }

constexpr std::size_t kIntroductionFields = 11;
constexpr std::size_t kRequestFields = 4;

Packet pack_introduction(Kind kind, const Introduction& introduction) {
  WireWriter out;
  begin(out, kind, kIntroductionFields);
  out.number(introduction.version);
  out.text(introduction.node);
  out.number(introduction.incarnation);
  out.number(introduction.peer_incarnation);
  out.text(introduction.host);
  out.number(introduction.pid);
  out.text(introduction.machine);
  out.list(introduction.terms.size());
  for (const Term& term : introduction.terms) {
    out.list(2);
    out.text(term.name);
    put_text(out, term.value);
  }
  out.text(introduction.address);
  put(out, introduction.received);
  out.flag(introduction.given_up);
  return finish(out);
}

// False: of another version, of which nothing more can be read.
bool get_version(WireReader& in, std::uint32_t& version) {
  version = in.number32();
  return version == kProtocolVersion;
}

template <class Body>
Body get_introduction(WireReader& in) {
  Body body;
  if (!get_version(in, body.version)) return body;
  body.node = get_words(in, kMostName);
  body.incarnation = in.number();
  if (in.ok() && body.incarnation == 0) in.fail("incarnation 0");
  body.peer_incarnation = in.number();
  body.host = get_words(in, kMostName);
  body.pid = in.number();
  body.machine = get_words(in, kMostName);
  const std::size_t terms = in.list_up_to(64);
  for (std::size_t i = 0; i < terms && in.ok(); ++i) {
    in.list(2);
    std::string name = in.text(kMostName);
    body.terms.push_back({std::move(name), get_words(in, kMostText)});
  }
  body.address = get_words(in, kMostAddress);
  get(in, body.received);
  body.given_up = in.flag();
  return body;
}

Heartbeat get_heartbeat(WireReader& in) {
  const std::uint64_t progress = in.number(INT64_MAX);
  return {progress, in.number32()};
}

Account get_account(WireReader& in) {
  Account account;
  get(in, account.received);
  const std::size_t credits = in.list_up_to(kMostEntries);
  for (std::size_t i = 0; i < credits && in.ok(); ++i) {
    in.list(3);
    const std::uint32_t link = in.number32();
    const std::uint64_t messages = in.number(INT64_MAX);
    account.credits.push_back({link, messages, in.number(INT64_MAX)});
  }
  return account;
}

void put(WireWriter& out, const ActorWait& actor) {
  out.list(5);
  put_text(out, actor.name);
  out.number(static_cast<std::uint64_t>(actor.activity));
  out.flag(actor.stopping);
  out.integer(actor.running_for.count());
  put_text(out, actor.words);
}

ActorWait get_actor_wait(WireReader& in) {
  ActorWait actor;
  in.list(5);
  actor.name = in.text(kMostName);
  actor.activity = static_cast<ActorWait::Activity>(
      in.number(static_cast<std::uint64_t>(ActorWait::Activity::kElsewhere)));
  actor.stopping = in.flag();
  actor.running_for = Duration(in.integer());
  actor.words = in.text(kMostText);
  return actor;
}

void put(WireWriter& out, const LinkWait& link) {
  out.list(11);
  out.number(link.from);
  out.number(link.to);
  out.text(link.from_port);
  out.text(link.to_port);
  out.number(static_cast<std::uint64_t>(link.lane));
  out.flag(link.sender_waits);
  out.integer(link.messages_out);
  out.integer(link.message_credits);
  out.integer(link.bytes_out);
  out.integer(link.byte_credits);
  out.integer(link.queued);
}

LinkWait get_link_wait(WireReader& in, std::size_t actors) {
  LinkWait link;
  in.list(11);
  link.from = in.number(kMostEntries);
  link.to = in.number(kMostEntries);
  if (in.ok() && (link.from >= actors || link.to >= actors)) in.fail("a link of no actor");
  link.from_port = in.text(kMostName);
  link.to_port = in.text(kMostName);
  link.lane = static_cast<Lane>(in.number(kLanes - 1));
  link.sender_waits = in.flag();
  link.messages_out = in.integer();
  link.message_credits = in.integer();
  link.bytes_out = in.integer();
  link.byte_credits = in.integer();
  link.queued = in.integer();
  return link;
}

GraphAnswer get_graph(WireReader& in) {
  GraphAnswer answer;
  const std::size_t actors = in.list_up_to(kMostEntries);
  for (std::size_t i = 0; i < actors && in.ok(); ++i) {
    answer.graph.actors.push_back(get_actor_wait(in));
  }
  const std::size_t links = in.list_up_to(kMostEntries);
  for (std::size_t i = 0; i < links && in.ok(); ++i) {
    answer.graph.links.push_back(get_link_wait(in, actors));
  }
  return answer;
}

// Of a process that is no node: both say the same of it, and which node they mean.
template <class Request>
Packet pack_request(Kind kind, const Request& request) {
  WireWriter out;
  begin(out, kind, kRequestFields);
  out.number(request.version);
  out.text(request.node);
  out.text(request.host);
  out.number(request.pid);
  return finish(out);
}

template <class Request>
Request get_request(WireReader& in) {
  Request request;
  if (!get_version(in, request.version)) return request;
  request.node = get_words(in, kMostName);
  request.host = get_words(in, kMostName);
  request.pid = in.number();
  return request;
}

Directory get_directory(WireReader& in) {
  Directory directory;
  directory.edition = in.number();
  const std::size_t entries = in.list_up_to(Directory::kMostEntries);
  for (std::size_t i = 0; i < entries && in.ok(); ++i) {
    in.list(5);
    DirectoryEntry entry;
    entry.node = in.text(kMostName);
    entry.address = in.text(kMostAddress);
    entry.key = in.text(kMostKey);
    entry.incarnation = in.number();
    entry.dial = in.flag();
    directory.entries.push_back(std::move(entry));
  }
  return directory;
}

constexpr std::size_t kParcelFields = 8;

Result<Parcel> get_parcel(WireReader& in, std::size_t frames, const WireTypes& types) {
  Parcel parcel;
  parcel.sequence = in.number();
  if (in.present()) parcel.link = in.number32();
  parcel.sender = in.text(kMostName);
  parcel.target = in.text(kMostName);
  if (in.present()) {
    in.list(2);
    parcel.cause = read_error(in);
    get(in, parcel.received);
  }
  const std::string name = in.text(kMostName);
  std::vector<Buffer> payloads(in.number(frames));
  for (Buffer& payload : payloads) payload = in.attachment();
  if (!in.ok()) return Error{ErrorKind::kInternal, in.problem()};
  ASSIGN_OR_RETURN(parcel.message, types.unpack(name, in, std::move(payloads)));
  return parcel;
}

std::size_t fields_of(Kind kind) {
  switch (kind) {
    case Kind::kHello:
    case Kind::kWelcome:
      return kIntroductionFields;
    case Kind::kRefusal:
    case Kind::kInvitation:
    case Kind::kDirectoryHeard:
    case Kind::kDrained:
    case Kind::kNotNow:
      return 1;
    case Kind::kAccount:
    case Kind::kHeartbeat:
    case Kind::kGraphAnswer:
    case Kind::kDirectory:
      return 2;
    case Kind::kBye:
    case Kind::kGraphRequest:
      return 0;
    case Kind::kEnrolment:
    case Kind::kDrainRequest:
      return kRequestFields;
    case Kind::kParcel:
      return kParcelFields;
  }
  return 0;
}

Result<AnyPacket> get(Kind kind, WireReader& in, const Packet& packet, const WireTypes& types) {
  switch (kind) {
    case Kind::kHello:
      return AnyPacket(get_introduction<Hello>(in));
    case Kind::kWelcome:
      return AnyPacket(get_introduction<Welcome>(in));
    case Kind::kRefusal: {
      Refusal refusal;
      refusal.error = read_error(in);
      refusal.error.message = printable(refusal.error.message);
      return AnyPacket(std::move(refusal));
    }
    case Kind::kAccount:
      return AnyPacket(get_account(in));
    case Kind::kHeartbeat:
      return AnyPacket(get_heartbeat(in));
    case Kind::kBye:
      return AnyPacket(Bye{});
    case Kind::kGraphRequest:
      return AnyPacket(GraphRequest{});
    case Kind::kGraphAnswer:
      return AnyPacket(get_graph(in));
    case Kind::kEnrolment:
      return AnyPacket(get_request<Enrolment>(in));
    case Kind::kInvitation: {
      Invitation invitation{get_words(in, kMostName), {}};
      invitation.contents = in.attachment();
      return AnyPacket(std::move(invitation));
    }
    case Kind::kParcel: {
      ASSIGN_OR_RETURN(Parcel parcel, get_parcel(in, packet.payloads.size(), types));
      return AnyPacket(std::move(parcel));
    }
    case Kind::kDirectory:
      return AnyPacket(get_directory(in));
    case Kind::kDirectoryHeard:
      return AnyPacket(DirectoryHeard{in.number()});
    case Kind::kDrainRequest:
      return AnyPacket(get_request<DrainRequest>(in));
    case Kind::kDrained:
      return AnyPacket(Drained{in.text(kMostName)});
    case Kind::kNotNow:
      return AnyPacket(NotNow{get_words(in, kMostText)});
  }
  return Error{ErrorKind::kInternal, "a packet of no kind"};
}

bool of_another_version(const AnyPacket& packet) {
  if (const auto* hello = std::get_if<Hello>(&packet)) return hello->version != kProtocolVersion;
  if (const auto* welcome = std::get_if<Welcome>(&packet)) {
    return welcome->version != kProtocolVersion;
  }
  if (const auto* enrolment = std::get_if<Enrolment>(&packet)) {
    return enrolment->version != kProtocolVersion;
  }
  const auto* drain = std::get_if<DrainRequest>(&packet);
  return drain != nullptr && drain->version != kProtocolVersion;
}

}  // namespace

Packet pack(const Hello& hello) { return pack_introduction(Kind::kHello, hello); }

Packet pack(const Welcome& welcome) { return pack_introduction(Kind::kWelcome, welcome); }

Packet pack(const Refusal& refusal) {
  WireWriter out;
  begin(out, Kind::kRefusal, 1);
  write_error(out, refusal.error);
  return finish(out);
}

Packet pack(const Account& account) {
  WireWriter out;
  begin(out, Kind::kAccount, 2);
  put(out, account.received);
  out.list(account.credits.size());
  for (const LinkCredit& credit : account.credits) {
    out.list(3);
    out.number(credit.link);
    out.number(credit.messages);
    out.number(credit.bytes);
  }
  return finish(out);
}

Packet pack(const Heartbeat& heartbeat) {
  WireWriter out;
  begin(out, Kind::kHeartbeat, 2);
  out.number(heartbeat.progress);
  out.number(heartbeat.load_percent);
  return finish(out);
}

Packet pack(const Bye&) {
  WireWriter out;
  begin(out, Kind::kBye, 0);
  return finish(out);
}

Packet pack(const GraphRequest&) {
  WireWriter out;
  begin(out, Kind::kGraphRequest, 0);
  return finish(out);
}

Packet pack(const GraphAnswer& answer) {
  WireWriter out;
  begin(out, Kind::kGraphAnswer, 2);
  out.list(answer.graph.actors.size());
  for (const ActorWait& actor : answer.graph.actors) put(out, actor);
  out.list(answer.graph.links.size());
  for (const LinkWait& link : answer.graph.links) put(out, link);
  return finish(out);
}

Packet pack(const Enrolment& enrolment) { return pack_request(Kind::kEnrolment, enrolment); }

Packet pack(const DrainRequest& request) { return pack_request(Kind::kDrainRequest, request); }

Packet pack(const Drained& drained) {
  WireWriter out;
  begin(out, Kind::kDrained, 1);
  out.text(drained.node);
  return finish(out);
}

Packet pack(const NotNow& answer) {
  WireWriter out;
  begin(out, Kind::kNotNow, 1);
  put_text(out, answer.why);
  return finish(out);
}

Packet pack(const Invitation& invitation) {
  WireWriter out;
  begin(out, Kind::kInvitation, 1);
  out.text(invitation.node);
  out.attach(invitation.contents);
  return finish(out);
}

Packet pack(const Directory& directory) {
  WireWriter out;
  begin(out, Kind::kDirectory, 2);
  out.number(directory.edition);
  out.list(directory.entries.size());
  for (const DirectoryEntry& entry : directory.entries) {
    out.list(5);
    out.text(entry.node);
    out.text(entry.address);
    out.text(entry.key);
    out.number(entry.incarnation);
    out.flag(entry.dial);
  }
  return finish(out);
}

Packet pack(const DirectoryHeard& heard) {
  WireWriter out;
  begin(out, Kind::kDirectoryHeard, 1);
  out.number(heard.edition);
  return finish(out);
}

Packet pack(const Parcel& parcel, const WireTypes& types) {
  WireWriter out;
  begin(out, Kind::kParcel, kParcelFields);
  out.number(parcel.sequence);
  parcel.link ? out.number(*parcel.link) : out.none();
  out.text(parcel.sender);
  out.text(parcel.target);
  if (parcel.cause) {
    out.list(2);
    write_error(out, *parcel.cause);
    put(out, parcel.received);
  } else {
    out.none();
  }
  out.text(parcel.message.name());
  const std::span<const Buffer> payloads = parcel.message.payloads();
  out.number(payloads.size());
  for (const Buffer& payload : payloads) out.attach(payload);
  types.pack(parcel.message, out);
  return finish(out);
}

Result<AnyPacket> unpack(const Packet& packet, const WireTypes& types) {
  WireReader in(packet.header.bytes(), packet.payloads);
  const std::size_t values = in.list_up_to(16);
  const std::uint64_t number = in.number(kLastKind);
  const auto kind = static_cast<Kind>(number);
  if (in.ok() && number == 0) in.fail("a packet of no kind");
  if (!in.ok()) return Error{ErrorKind::kInternal, in.problem()};
  Result<AnyPacket> read = get(kind, in, packet, types);
  if (!read.ok() || (in.ok() && of_another_version(*read))) return read;
  if (in.ok() && values != fields_of(kind) + 1) in.fail("a packet with missing or added fields");
  if (!in.finished()) return Error{ErrorKind::kInternal, in.problem()};
  return read;
}

}  // namespace troupe::runtime
