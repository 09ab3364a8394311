#include "runtime/transport/zmq_socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <zmq.hpp>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runtime/base/descriptor.h"
#include "runtime/base/socket_path.h"

namespace troupe::runtime {
namespace {

// Below it a copy costs less than sharing does; it also keeps a small payload from holding the
// receive buffer of 8 KiB that the library left it in.
constexpr std::size_t kCopyBytes = 8192;
constexpr std::size_t kPayloadAlignment = 8;

constexpr int kGiveUpMilliseconds = 60'000;
constexpr int kNeverMilliseconds = 1'000'000'000;

// Keys have no spaces.
constexpr std::string_view kExpired = " expired";

constexpr int kWatched = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                         ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                         ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                         ZMQ_EVENT_CONNECT_RETRIED;

// Runs on an I/O thread.
void drop_buffer(void*, void* hint) { delete static_cast<Buffer*>(hint); }

zmq::message_t message_of(const Buffer& frame) {
  if (frame.size() < kCopyBytes) return zmq::message_t(frame.data(), frame.size());
  return zmq::message_t(const_cast<std::byte*>(frame.data()), frame.size(), drop_buffer,
                        new Buffer(frame));
}

// Leaves a message that is copied as it is, and takes another one over.
Buffer buffer_of(zmq::message_t& message) {
  const auto* begin = message.data<std::byte>();
  if (message.size() < kCopyBytes ||
      reinterpret_cast<std::uintptr_t>(begin) % kPayloadAlignment != 0) {
    return Buffer::copy_of({begin, message.size()});
  }
  auto owner = std::make_shared<zmq::message_t>(std::move(message));
  auto* data = owner->data<std::byte>();
  const std::size_t bytes = owner->size();
  return Buffer::wrap(data, bytes, std::move(owner));
}

int socket_type(ZmqSocketOptions::Role role) {
  switch (role) {
    case ZmqSocketOptions::Role::kRouter:
      return ZMQ_ROUTER;
    case ZmqSocketOptions::Role::kDealer:
      return ZMQ_DEALER;
    case ZmqSocketOptions::Role::kReply:
      return ZMQ_REP;
  }
  return ZMQ_REP;
}

int milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

void set_security(zmq::socket_t& socket, const ZmqSocketOptions& options) {
  if (!options.keys) return;
  const auto set_key = [&](auto option, const std::string& key) {
    const auto bytes = bytes_of_key(key);
    socket.set(option, zmq::const_buffer(bytes.data(), bytes.size()));
  };
  set_key(zmq::sockopt::curve_secretkey, options.keys->secret_key);
  if (options.role == ZmqSocketOptions::Role::kRouter) {
    socket.set(zmq::sockopt::curve_server, true);
    // Without a domain the library asks nobody whom to let in.
    socket.set(zmq::sockopt::zap_domain, "troupe");
  } else {
    set_key(zmq::sockopt::curve_publickey, options.keys->public_key);
    set_key(zmq::sockopt::curve_serverkey, options.server_key);
  }
}

void set_up(zmq::socket_t& socket, const ZmqSocketOptions& options) {
  // All that is under way is bounded by credits of the callers, far above this. A mark of the
  // library would make a ROUTER refuse what it was already promised to take.
  socket.set(zmq::sockopt::sndhwm, 0);
  socket.set(zmq::sockopt::rcvhwm, 0);
  socket.set(zmq::sockopt::linger, milliseconds(options.linger));
  if (options.role == ZmqSocketOptions::Role::kReply) return;
  socket.set(zmq::sockopt::maxmsgsize, options.most_frame_bytes);
  socket.set(zmq::sockopt::ipv6, true);
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  socket.set(zmq::sockopt::tcp_keepalive_idle, 30);
  socket.set(zmq::sockopt::tcp_keepalive_intvl, 10);
  socket.set(zmq::sockopt::tcp_keepalive_cnt, 3);
  // While data is not acknowledged keepalive does not act: what a cut cable holds is let go by
  // this.
  socket.set(zmq::sockopt::tcp_maxrt, kGiveUpMilliseconds);
  socket.set(zmq::sockopt::handshake_ivl, milliseconds(options.handshake_within));
  // Never by itself: whoever dials decides about another attempt. "Not at all" (-1) would throw
  // away what has arrived and was not taken yet.
  socket.set(zmq::sockopt::reconnect_ivl, kNeverMilliseconds);
  socket.set(zmq::sockopt::connect_timeout, 5000);
  // Never the library's heartbeats: 4.3.4 aborts ("Assertion failed: !_io_error") when one is due
  // on a closed socket that lingers while its peer has gone. Silence is the gate's to notice.
  if (options.role == ZmqSocketOptions::Role::kRouter) {
    socket.set(zmq::sockopt::router_mandatory, true);
    // Hundreds of processes that start together dial at the same time. Beyond 100, the library's
    // own limit, the kernel ignores them, and the unlucky ones wait longer each time.
    socket.set(zmq::sockopt::backlog, SOMAXCONN);
  } else {
    socket.set(zmq::sockopt::routing_id, options.route);
  }
  set_security(socket, options);
}

ZmqEvent::What failure_of_protocol(std::uint32_t value) {
  return value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH ? ZmqEvent::What::kOtherMechanism
                                                             : ZmqEvent::What::kFailed;
}

Result<void> attempt(const std::string& endpoint, std::string_view verb, auto&& action) {
  try {
    action();
  } catch (const zmq::error_t& failure) {
    // Not from the exception: sanitizers need a descriptor to look into one.
    const int number = ::zmq_errno();
    if (is_out_of_descriptors(number)) return out_of_descriptors();
    std::string advice;
    if (number == EADDRINUSE) {
      advice = "; end the program that uses it ('ss -ltnp' shows it) or give another port";
    } else if (number == EADDRNOTAVAIL) {
      advice = "; that is not an address of this machine";
    } else if (number == EACCES) {
      advice = "; give a port from 1024 up, or a folder you may write to";
    }
    return Error{ErrorKind::kUsage,
                 fmt::format("cannot {} {}: {}{}", verb, endpoint, failure.what(), advice)};
  }
  return {};
}

// The address at the other end of a socket. The library may close it meanwhile: then it is unknown.
std::string peer_address(int descriptor) {
  sockaddr_storage peer{};
  socklen_t bytes = sizeof(peer);
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &bytes) != 0) return "unknown";
  char text[INET6_ADDRSTRLEN] = "";
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return fmt::format("tcp://{}:{}", text, ntohs(v4.sin_port));
  }
  if (peer.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
    // Sockets speak IPv6 as well, and then show an IPv4 peer so. People read the plain form.
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      ::inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof(text));
      return fmt::format("tcp://{}:{}", text, ntohs(v6.sin6_port));
    }
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    return fmt::format("tcp://[{}]:{}", text, ntohs(v6.sin6_port));
  }
  return "ipc";
}

// A thread waits with one and is woken through another; the reaper is a thread too.
std::size_t descriptors_of_threads(int io_threads) {
  return 2 * (static_cast<std::size_t>(io_threads) + 2);
}

}  // namespace

Error out_of_descriptors() { return out_of_descriptors(ErrorKind::kUsage, "connections"); }

struct ZmqContext::Impl {
  explicit Impl(int io_threads)
      : context(io_threads), thread_descriptors(descriptors_of_threads(io_threads)) {
    // Beyond what descriptors allow anyway.
    context.set(zmq::ctxopt::max_sockets, 65'000);
  }
  zmq::context_t context;
  const std::size_t thread_descriptors;
  std::uint64_t monitors = 0;
};

ZmqContext::ZmqContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ZmqContext::~ZmqContext() = default;

Result<std::unique_ptr<ZmqContext>> ZmqContext::open(int io_threads) {
  if (!descriptors_left(descriptors_of_threads(io_threads))) return out_of_descriptors();
  try {
    return std::unique_ptr<ZmqContext>(new ZmqContext(std::make_unique<Impl>(io_threads)));
  } catch (const zmq::error_t& failure) {
    return Error{ErrorKind::kInternal, fmt::format("ZeroMQ does not start: {}", failure.what())};
  }
}

struct ZmqSocket::Impl {
  Impl(zmq::context_t& library, std::uint64_t number, const ZmqSocketOptions& options)
      : socket(library, socket_type(options.role)),
        routed(options.role == ZmqSocketOptions::Role::kRouter) {
    set_up(socket, options);
    descriptor = socket.get(zmq::sockopt::fd);
    if (options.role == ZmqSocketOptions::Role::kReply) return;
    const std::string name = fmt::format("inproc://monitor-{}", number);
    if (::zmq_socket_monitor(socket.handle(), name.c_str(), kWatched) != 0) throw zmq::error_t();
    monitor = zmq::socket_t(library, ZMQ_PAIR);
    monitor.set(zmq::sockopt::rcvhwm, 0);  // an I/O thread must never wait for us
    monitor.set(zmq::sockopt::linger, 0);
    monitor.connect(name);
    events_descriptor = monitor.get(zmq::sockopt::fd);
  }

  zmq::socket_t socket;
  zmq::socket_t monitor;           // closed at kReply
  zmq::message_t last;             // the last frame taken; empty if it was handed on
  std::optional<SocketFile> file;  // where it listens
  const bool routed;
  int descriptor = -1;  // readable when the library has something to tell the socket
  int events_descriptor = -1;
};

ZmqSocket::ZmqSocket(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)), has_events_(impl_->monitor.handle() != nullptr) {}

Result<std::unique_ptr<ZmqSocket>> ZmqSocket::open(ZmqContext& context,
                                                   const ZmqSocketOptions& options) {
  // The socket, both ends of its monitor and a connection, and with the first one all threads
  // begin.
  const std::size_t threads = context.impl_->monitors == 0 ? context.impl_->thread_descriptors : 0;
  if (!descriptors_left(4 + threads)) return out_of_descriptors();
  try {
    return std::unique_ptr<ZmqSocket>(new ZmqSocket(
        std::make_unique<Impl>(context.impl_->context, context.impl_->monitors++, options)));
  } catch (const zmq::error_t& failure) {
    if (is_out_of_descriptors(failure.num())) return out_of_descriptors();
    return Error{ErrorKind::kInternal, fmt::format("cannot make a socket: {}", failure.what())};
  }
}

ZmqSocket::~ZmqSocket() {
  if (impl_->monitor.handle() != nullptr) {
    ::zmq_socket_monitor(impl_->socket.handle(), nullptr, 0);
  }
}

Result<std::string> ZmqSocket::bind(const std::string& endpoint) {
  RETURN_IF_ERROR(attempt(endpoint, "listen on", [&] { impl_->socket.bind(endpoint); }));
  std::string bound = impl_->socket.get(zmq::sockopt::last_endpoint);
  impl_->file.emplace(bound);
  return bound;
}

Result<void> ZmqSocket::connect(const std::string& endpoint) {
  return attempt(endpoint, "connect to", [&] { impl_->socket.connect(endpoint); });
}

void ZmqSocket::forget() { impl_->socket.set(zmq::sockopt::linger, 0); }

bool ZmqSocket::send(std::string_view route, std::span<const Buffer> frames) {
  constexpr auto kDontWait = zmq::send_flags::dontwait;
  // Sending looks at what the descriptor told of, too, which is then silent about it.
  readable_ = true;
  try {
    if (!route.empty() &&
        !impl_->socket.send(zmq::buffer(route), kDontWait | zmq::send_flags::sndmore)) {
      return false;
    }
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const bool more = i + 1 < frames.size();
      const auto taken = impl_->socket.send(
          message_of(frames[i]), more ? kDontWait | zmq::send_flags::sndmore : kDontWait);
      if (!taken) return false;
    }
  } catch (const zmq::error_t&) {
    return false;
  }
  return true;
}

bool ZmqSocket::receive(std::vector<Buffer>& frames) {
  frames.clear();
  std::size_t count = 0;
  readable_ = true;
  try {
    for (bool more = true; more; ++count) {
      // Only the first frame can be missing: a message is there as a whole or not at all.
      if (!impl_->socket.recv(impl_->last, zmq::recv_flags::dontwait)) return readable_ = false;
      more = impl_->last.more();
      if (count < kMostFrames) frames.push_back(buffer_of(impl_->last));
    }
  } catch (const zmq::error_t&) {
    return readable_ = false;
  }
  if (count > kMostFrames) frames.resize(impl_->routed ? 1 : 0);
  return true;
}

std::string ZmqOrigin::user_id(const std::string& key, bool expired) {
  return expired ? key + std::string(kExpired) : key;
}

ZmqOrigin ZmqSocket::origin() const {
  ZmqOrigin origin;
  zmq_msg_t* message = impl_->last.handle();
  origin.descriptor = ::zmq_msg_get(message, ZMQ_SRCFD);
  if (const char* user = ::zmq_msg_gets(message, "User-Id"); user != nullptr) {
    origin.key = user;
    origin.key_expired = origin.key.ends_with(kExpired);
    if (origin.key_expired) origin.key.resize(origin.key.size() - kExpired.size());
  }
  origin.address = peer_address(origin.descriptor);
  return origin;
}

// A monitor's message has two frames: a code with its value, which is a descriptor or a cause by
// the code, and an endpoint, which nobody here needs.
bool ZmqSocket::next_event(ZmqEvent& event) {
  if (impl_->monitor.handle() == nullptr) return false;
  has_events_ = true;
  try {
    zmq::message_t facts;
    zmq::message_t endpoint;
    for (;;) {
      if (!impl_->monitor.recv(facts, zmq::recv_flags::dontwait)) return has_events_ = false;
      if (facts.more() && !impl_->monitor.recv(endpoint)) return false;
      std::uint16_t code = 0;
      std::uint32_t value = 0;
      if (facts.size() < sizeof(code) + sizeof(value)) continue;
      std::memcpy(&code, facts.data(), sizeof(code));
      std::memcpy(&value, facts.data<char>() + sizeof(code), sizeof(value));
      event.descriptor = static_cast<int>(value);
      switch (code) {
        case ZMQ_EVENT_DISCONNECTED:
          event.what = ZmqEvent::What::kDisconnected;
          return true;
        case ZMQ_EVENT_CLOSED:
        case ZMQ_EVENT_CONNECT_RETRIED:
          event.what = ZmqEvent::What::kNotReached;
          return true;
        case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
          event.what = ZmqEvent::What::kReady;
          return true;
        case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
          event.what = ZmqEvent::What::kRefused;
          return true;
        case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
          event.what = failure_of_protocol(value);
          return true;
        case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
          event.what = ZmqEvent::What::kFailed;
          return true;
        default:
          break;
      }
    }
  } catch (const zmq::error_t&) {
    return false;
  }
}

// The descriptor tells of changes only, and some were told to a send() or a partial reading.
bool ZmqSocket::check_readable() {
  if (readable_) {
    try {
      readable_ = (impl_->socket.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0;
    } catch (const zmq::error_t&) {
      readable_ = false;
    }
  }
  return readable_;
}

void wait_for_any(std::span<ZmqSocket* const> sockets, std::initializer_list<int> descriptors,
                  long timeout_ms) {
  std::vector<pollfd> items;
  items.reserve(2 * sockets.size() + descriptors.size());
  for (ZmqSocket* socket : sockets) {
    items.push_back({socket->impl_->descriptor, POLLIN, 0});
    items.push_back({socket->impl_->events_descriptor, POLLIN, 0});
    if (timeout_ms != 0 && (socket->has_events_ || socket->check_readable())) timeout_ms = 0;
  }
  for (const int descriptor : descriptors) items.push_back({descriptor, POLLIN, 0});
  // A signal ends the wait early, which is no trouble.
  if (::poll(items.data(), items.size(), static_cast<int>(timeout_ms)) < 0) return;
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    sockets[i]->readable_ |= items[2 * i].revents != 0;
    sockets[i]->has_events_ |= items[2 * i + 1].revents != 0;
  }
}

}  // namespace troupe::runtime
