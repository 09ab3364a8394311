#include "runtime/transport/zmq_dialer.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/descriptor.h"

namespace troupe::runtime {
namespace {

constexpr int kFewMessages = 64;
constexpr int kManyMessages = 100'000;
constexpr Duration kFirstRest = std::chrono::milliseconds(50);
constexpr Duration kLongestRest = std::chrono::seconds(1);
// A listener that cannot read what the dialer encrypted hangs up without a word. So does one that
// is being stopped, but not so many times.
constexpr int kMostFailedHandshakes = 5;
constexpr std::pair<Lane, int> kControlStrand{Lane::kControl, 0};

}  // namespace

ZmqDialer::ZmqDialer(ZmqContext& context, const ZmqWireOptions& options, ZmqSink& sink,
                     ConnectionId id, Address address, ResolvedAddress resolved,
                     std::string server_key)
    : context_(context),
      options_(options),
      sink_(sink),
      id_(id),
      address_(std::move(address)),
      resolved_(std::move(resolved)),
      server_key_(std::move(server_key)) {}

Result<std::unique_ptr<ZmqDialer>> ZmqDialer::begin(ZmqContext& context,
                                                    const ZmqWireOptions& options, ZmqSink& sink,
                                                    ConnectionId id, Address address,
                                                    ResolvedAddress resolved,
                                                    std::string server_key) {
  std::unique_ptr<ZmqDialer> dialer(new ZmqDialer(context, options, sink, id, std::move(address),
                                                  std::move(resolved), std::move(server_key)));
  RETURN_IF_ERROR(dialer->attempt(options.clock->now()));
  return dialer;
}

ZmqDialer::~ZmqDialer() { part(); }

void ZmqDialer::part() {
  if (state_ == State::kParted) return;
  drop_if_lost();
  if (state_ == State::kOpen) {
    traffic_->say_bye(out());
  } else {
    for (auto& [id, socket] : strands_) socket->forget();
  }
  state_ = State::kParted;
}

void ZmqDialer::drop_if_lost() {
  bool lost = false;
  ZmqEvent event;
  for (auto& [id, socket] : strands_) {
    while (socket->next_event(event)) lost |= event.what == ZmqEvent::What::kDisconnected;
  }
  if (!lost) return;
  for (auto& [id, socket] : strands_) socket->forget();
}

Result<void> ZmqDialer::attempt(TimePoint now) {
  ++attempts_;
  token_ = random_token();
  traffic_ = std::make_unique<ZmqTraffic>(options_, sink_);
  state_ = State::kAttaching;
  begun_ = now;
  // The monitor tells when nobody listens there. From the attach on, time counts.
  deadline_ = TimePoint::max();
  ASSIGN_OR_RETURN(const bool connecting, add_strand(kControlStrand, resolved_.endpoint));
  if (!connecting) rest(now);
  return {};
}

// False: that cannot be connected to, as yet.
Result<bool> ZmqDialer::add_strand(StrandId id, const std::string& endpoint) {
  ZmqSocketOptions socket;
  socket.role = ZmqSocketOptions::Role::kDealer;
  socket.route = StrandName{token_, id.first, static_cast<std::uint8_t>(id.second)}.route();
  socket.most_frame_bytes = static_cast<std::int64_t>(
      (id.first == Lane::kData ? std::max(options_.chunk_bytes, kMostPacketFrameBytes)
                               : kMostPacketFrameBytes) +
      1024);
  socket.linger = options_.linger;
  if (!server_key_.empty()) socket.keys = options_.keys;
  socket.server_key = server_key_;
  socket.handshake_within = options_.attach_within;
  ASSIGN_OR_RETURN(auto made, ZmqSocket::open(context_, socket));
  const auto connecting = made->connect(endpoint);
  strands_[id] = std::move(made);
  if (!connecting.ok()) options_.log.debug(connecting.error().message);
  return connecting.ok();
}

void ZmqDialer::rest(TimePoint now) {
  for (auto& [id, socket] : strands_) socket->forget();
  strands_.clear();
  traffic_.reset();
  state_ = State::kResting;
  deadline_ = now + std::min(kLongestRest, kFirstRest * (1 << std::min(attempts_ - 1, 10)));
}

void ZmqDialer::end(std::string why, ErrorKind kind) {
  for (auto& [id, socket] : strands_) socket->forget();
  strands_.clear();
  traffic_.reset();
  state_ = State::kEnded;
  sink_.disconnected(id_, {kind, std::move(why)});
}

// Ends an open connection whose peer has sent `wrong`, and tells the peer. The sockets stay for a
// while: if one were gone, the peer might see that first.
void ZmqDialer::accuse(const std::string& wrong, TimePoint now) {
  sink_.dropped();
  const Buffer frames[] = {write_refuse(fmt::format("this end sent {}", wrong))};
  strands_.at(kControlStrand)->send({}, frames);
  state_ = State::kAccusing;
  deadline_ = now + options_.linger;
  sink_.disconnected(id_, {ErrorKind::kLostPeers, fmt::format("the other end sent {}", wrong)});
}

void ZmqDialer::ignore_all(TimePoint now) {
  ZmqEvent event;
  std::vector<Buffer> frames;
  for (auto& [id, socket] : strands_) {
    while (socket->next_event(event)) {
    }
    for (int i = 0; i < kFewMessages && socket->receive(frames); ++i) {
    }
  }
  if (now < deadline_) return;
  strands_.clear();
  traffic_.reset();
  state_ = State::kEnded;
}

void ZmqDialer::add_to(std::vector<ZmqSocket*>& sockets) {
  for (auto& [id, socket] : strands_) sockets.push_back(socket.get());
}

TimePoint ZmqDialer::next_deadline() const { return deadline_; }

void ZmqDialer::serve(TimePoint now) {
  if (state_ == State::kEnded) return;
  if (state_ == State::kAccusing) return ignore_all(now);
  if (now >= deadline_) {
    if (state_ == State::kResting) {
      const auto begun = attempt(now);
      if (!begun.ok()) end(begun.error().message, begun.error().kind);
      return;
    }
    if (state_ == State::kOpen) return end("the other end closed the connection");
    return rest(now);
  }
  for (auto& [id, socket] : strands_) {
    if (socket->has_events() && !read_events(id, *socket, now)) return;
  }
  if (state_ == State::kAttaching || state_ == State::kJoining) read_control(now);
  if (state_ == State::kOpen) read_open(false, now);
}

// False: the strands are gone.
bool ZmqDialer::read_events(StrandId id, ZmqSocket& socket, TimePoint now) {
  ZmqEvent event;
  while (socket.next_event(event)) {
    if (event.what == ZmqEvent::What::kReady) {
      attach(id);
    } else if (!strand_failed(id, event.what, now)) {
      return false;
    }
  }
  return true;
}

// The library does not tell a peer that hangs up from one that has not answered in time, which is
// stopped or overloaded and refuses nothing.
bool ZmqDialer::was_in_time(TimePoint now) const {
  return now - begun_ < options_.attach_within * 9 / 10;
}

bool ZmqDialer::strand_failed(StrandId id, ZmqEvent::What what, TimePoint now) {
  if (state_ == State::kOpen) {
    // What arrived before the end is handed on before it.
    read_open(true, now);
    if (state_ != State::kOpen) return false;
    if (traffic_->said_bye(id.first, id.second)) return true;
    end("the connection was lost: the other end or the network is gone");
    return false;
  }
  // A refusal may stand on the control socket, before the other end hung up.
  if (what == ZmqEvent::What::kDisconnected) read_control(now);
  if (state_ == State::kEnded || state_ == State::kResting) return false;
  if (state_ == State::kOpen) return strand_failed(id, what, now);
  if (what == ZmqEvent::What::kRefused) {
    // The key of a token must not end on a list, where it would be good for ever.
    end(options_.token_from.empty()
            ? fmt::format("{} does not know this node's key: add {} to its allow-list",
                          address_.text(), options_.keys ? options_.keys->public_key : "it")
            : fmt::format("{} does not take the token of {}: it has expired, or belongs to other "
                          "keys; ask for a new one, which 'troupe token DIR' makes there",
                          address_.text(), options_.token_from));
  } else if (what == ZmqEvent::What::kOtherMechanism) {
    end(server_key_.empty()
            ? fmt::format("{} takes encrypted connections only: name this node's keys and the key "
                          "of the other end",
                          address_.text())
            : fmt::format("{} does not encrypt and this end has to: give the other end keys, or "
                          "dial the right address",
                          address_.text()));
  } else if (what == ZmqEvent::What::kFailed && was_in_time(now) &&
             ++failed_handshakes_ >= kMostFailedHandshakes) {
    end(server_key_.empty()
            ? fmt::format("{} hangs up during the handshake: it takes encrypted connections only, "
                          "or it is not Troupe that listens there",
                          address_.text())
            : fmt::format("{} hangs up during the handshake: it does not encrypt, or it has "
                          "another key than {}; compare that with the public key of the node that "
                          "listens there",
                          address_.text(), server_key_));
  } else if (what == ZmqEvent::What::kNotReached && !descriptors_left(1)) {
    const Error none = out_of_descriptors();
    end(none.message, none.kind);
  } else {
    rest(now);
  }
  return false;
}

void ZmqDialer::attach(StrandId id) {
  Attach attach;
  attach.strand = {token_, id.first, static_cast<std::uint8_t>(id.second)};
  attach.stripes = static_cast<std::uint8_t>(options_.data_stripes);
  attach.chunk_bytes = static_cast<std::uint32_t>(options_.chunk_bytes);
  if (id == kControlStrand) {
    attach.offer = traffic_->offer();
    deadline_ = options_.clock->now() + options_.attach_within;
  }
  const Buffer frames[] = {write_attach(attach)};
  strands_.at(id)->send({}, frames);
}

void ZmqDialer::read_control(TimePoint now) {
  std::vector<Buffer> frames;
  while ((state_ == State::kAttaching || state_ == State::kJoining) &&
         strands_.at(kControlStrand)->receive(frames)) {
    if (frames.empty()) {
      sink_.dropped();
    } else {
      take_answer(frames[0].bytes(), now);
    }
  }
}

void ZmqDialer::take_answer(std::span<const std::byte> frame, TimePoint now) {
  const auto version = version_of(frame);
  if (version && *version != kWireVersion) {
    return end(fmt::format("{} speaks version {} of the wire and this end {}: run the same release "
                           "of Troupe on both",
                           address_.text(), *version, kWireVersion),
               ErrorKind::kUsage);
  }
  const auto kind = kind_of(frame);
  if (kind == FrameKind::kRefuse) {
    return end(fmt::format("{} refused the connection: {}", address_.text(), read_refuse(frame)));
  }
  if (kind == FrameKind::kOpen && state_ == State::kJoining) return open();
  const auto welcome = read_welcome(frame);
  if (!welcome || state_ != State::kAttaching) return sink_.dropped();
  join(*welcome, now);
}

void ZmqDialer::join(const WireWelcome& welcome, TimePoint now) {
  state_ = State::kJoining;
  traffic_->agree_on(std::min<std::size_t>(options_.chunk_bytes, welcome.chunk_bytes),
                     options_.data_stripes);
  traffic_->peer_sees_offer(welcome.sees_offer);
  begun_ = now;
  const auto connecting = add_other_strands(welcome);
  if (!connecting.ok()) return end(connecting.error().message, connecting.error().kind);
  if (!*connecting) return rest(now);
  const Buffer frames[] = {write_ready({traffic_->open_offer(welcome.offer)})};
  strands_.at(kControlStrand)->send({}, frames);
}

Result<bool> ZmqDialer::add_other_strands(const WireWelcome& welcome) {
  std::string data = resolved_.endpoint + ".data";
  std::string metrics = resolved_.endpoint + ".metrics";
  if (address_.kind == Address::Kind::kTcp) {
    data = endpoint_with_port(resolved_, welcome.data_port);
    metrics = endpoint_with_port(resolved_, welcome.metrics_port);
  }
  ASSIGN_OR_RETURN(bool connecting, add_strand({Lane::kMetrics, 0}, metrics));
  for (int stripe = 0; stripe < options_.data_stripes; ++stripe) {
    ASSIGN_OR_RETURN(const bool also, add_strand({Lane::kData, stripe}, data));
    connecting &= also;
  }
  return connecting;
}

void ZmqDialer::open() {
  state_ = State::kOpen;
  deadline_ = TimePoint::max();
  sink_.connected(id_, {true, address_.text(), server_key_});
}

// False: the connection ended, or there is nothing more.
bool ZmqDialer::read_strand(StrandId id, int most, TimePoint now) {
  ZmqSocket& socket = *strands_.at(id);
  std::vector<Buffer> frames;
  for (int i = 0; i < most && socket.receive(frames); ++i) {
    if (!frames.empty() && kind_of(frames[0].bytes()) == FrameKind::kRefuse) {
      end(fmt::format("the other end refused the connection: {}", read_refuse(frames[0].bytes())));
      return false;
    }
    const bool first_bye = !traffic_->any_bye();
    const std::string wrong = traffic_->take(id_, id.first, id.second, frames);
    if (!wrong.empty()) {
      accuse(wrong, now);
      return false;
    }
    if (traffic_->all_byes()) {
      end("the other end closed the connection");
      return false;
    }
    if (first_bye && traffic_->any_bye()) deadline_ = now + options_.linger;
  }
  return true;
}

void ZmqDialer::read_open(bool everything, TimePoint now) {
  for (auto& [id, socket] : strands_) {  // control first
    if (!everything && !socket->readable()) continue;
    const int most = everything || id == kControlStrand ? kManyMessages : kFewMessages;
    if (!read_strand(id, most, now)) return;
  }
}

ZmqTraffic::Out ZmqDialer::out() {
  return [this](Lane lane, int stripe, std::span<const Buffer> frames) {
    strands_.at({lane, stripe})->send({}, frames);
  };
}

void ZmqDialer::send(Lane lane, const Packet& packet) {
  if (state_ == State::kOpen) traffic_->send(lane, packet, out());
}

}  // namespace troupe::runtime
