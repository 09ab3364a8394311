#include <utility>  // Asio forgets it

#include "runtime/relay/relay.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <list>
#include <map>
#include <thread>

#include "runtime/base/start_thread.h"
#include "runtime/relay/relay_frames.h"
#include "runtime/relay/splice.h"

namespace troupe::runtime {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// The most frames that a client may not have read yet; more than calls can be made to it.
constexpr std::size_t kMostUnread = 4096;
// After an accept that failed, as without descriptors.
constexpr auto kAcceptPause = std::chrono::milliseconds(200);

// Takes as long for any two.
bool same(const RelayToken& one, const RelayToken& other) {
  std::byte difference{0};
  for (std::size_t i = 0; i < one.size(); ++i) difference |= one[i] ^ other[i];
  return difference == std::byte{0};
}

// A connection over which a client hears who calls. Its handlers own it.
class Attendance : public std::enable_shared_from_this<Attendance> {
 public:
  Attendance(LinePointer line, Duration silent_within)
      : line_(std::move(line)), within_(silent_within) {}

  void begin() {
    say({});
    listen();
  }
  void say(const RelayFrame& frame) {
    if (unread_.size() >= kMostUnread) return close();
    unread_.push_back(write_relay_frame(frame));
    if (unread_.size() == 1) send();
  }
  void close() { line_->close(); }
  bool is_open() const { return line_->socket.is_open(); }

 private:
  void listen() {
    line_->close_after(within_);
    asio::async_read(line_->socket, asio::buffer(line_->frame),
                     [self = shared_from_this()](const error_code& failed, std::size_t) {
                       const auto frame = read_relay_frame(self->line_->frame);
                       if (failed || !frame || frame->kind != RelayFrame::Kind::kSign) {
                         return self->close();
                       }
                       self->say({});
                       self->listen();
                     });
  }
  void send() {
    asio::async_write(line_->socket, asio::buffer(unread_.front()),
                      [self = shared_from_this()](const error_code& failed, std::size_t) {
                        if (failed) return self->close();
                        self->unread_.pop_front();
                        if (!self->unread_.empty()) self->send();
                      });
  }

  const LinePointer line_;
  const Duration within_;
  std::deque<RelayFrameBytes> unread_;
};

struct Client {
  RelayToken token{};
  // Held by each of its calls, waiting and taken.
  std::shared_ptr<void> calls = std::make_shared<char>();
  std::weak_ptr<Attendance> attendance;
};

// A call that waits to be taken.
struct Call {
  std::uint32_t target = 0;
  StreamSocket socket;
  std::shared_ptr<void> counted;  // among the caller's
  std::unique_ptr<asio::steady_timer> deadline;
};

}  // namespace

struct Relay::Impl {
  explicit Impl(const RelayOptions& wanted) : options(wanted), acceptor(io), pause(io) {}

  Result<void> listen();
  void accept();
  void receive(StreamSocket socket);
  void take(const LinePointer& guest);
  void take_call(const RelayFrame& frame, Client& caller, StreamSocket socket);
  void take_taker(const RelayFrame& frame, StreamSocket socket);

  const RelayOptions options;
  asio::io_context io{1};
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  std::list<LinePointer> guests;  // have not said what they are for; oldest first
  std::map<std::uint32_t, Client> clients;
  std::map<std::uint64_t, Call> calls;
  std::uint64_t last_call = 0;
  std::thread thread;
};

Result<void> Relay::Impl::listen() {
  error_code failed;
  const tcp::endpoint place = relay_endpoint(options.host, options.port, failed);
  if (!failed) acceptor.open(place.protocol(), failed);
  if (!failed) acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor.bind(place, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (!failed) return {};
  return Error{ErrorKind::kUsage, fmt::format("cannot listen on {} port {}: {}", options.host,
                                              options.port, failed.message())};
}

void Relay::Impl::accept() {
  acceptor.async_accept(io, [this](const error_code& failed, tcp::socket socket) {
    if (!failed) {
      receive(StreamSocket(std::move(socket)));
      return accept();
    }
    pause.expires_after(kAcceptPause);
    pause.async_wait([this](const error_code&) { accept(); });
  });
}

void Relay::Impl::receive(StreamSocket socket) {
  prepare_for_relay(socket);
  if (guests.size() >= options.most_unidentified) {
    // Silent guests must not keep others out.
    guests.front()->close();
    guests.pop_front();
  }
  const auto guest = std::make_shared<Line>(std::move(socket));
  guests.push_back(guest);
  guest->close_after(options.answer_within);
  asio::async_read(guest->socket, asio::buffer(guest->frame),
                   [this, guest](const error_code& failed, std::size_t) {
                     guests.remove(guest);
                     guest->deadline.cancel();
                     if (!failed) take(guest);
                   });
}

// A guest without a known token is cut off without a word. A client that attends again has given up
// its earlier connection, which may not have noticed that it is broken.
void Relay::Impl::take(const LinePointer& guest) {
  const auto frame = read_relay_frame(guest->frame);
  const auto client = frame ? clients.find(frame->client) : clients.end();
  if (client == clients.end() || !same(client->second.token, frame->token)) {
    options.log.debug("the relay has cut off an unknown peer");
    return;
  }
  if (frame->kind == RelayFrame::Kind::kAttend) {
    if (const auto before = client->second.attendance.lock()) before->close();
    const auto attendance = std::make_shared<Attendance>(guest, options.silent_within);
    client->second.attendance = attendance;
    attendance->begin();
  } else if (frame->kind == RelayFrame::Kind::kCall) {
    take_call(*frame, client->second, std::move(guest->socket));
  } else if (frame->kind == RelayFrame::Kind::kTake) {
    take_taker(*frame, std::move(guest->socket));
  }
}

// The caller may try again: whoever does not attend now may in a moment.
void Relay::Impl::take_call(const RelayFrame& frame, Client& caller, StreamSocket socket) {
  const auto target = clients.find(frame.other);
  if (target == clients.end() || frame.other == frame.client) return;
  if (caller.calls.use_count() > options.most_calls) return;
  const auto attendance = target->second.attendance.lock();
  if (!attendance || !attendance->is_open()) return;
  const std::uint64_t number = ++last_call;
  auto deadline = std::make_unique<asio::steady_timer>(io, options.answer_within);
  deadline->async_wait([this, number](const error_code& taken) {
    if (!taken) calls.erase(number);
  });
  calls.emplace(number, Call{frame.other, std::move(socket), caller.calls, std::move(deadline)});
  RelayFrame ring;
  ring.kind = RelayFrame::Kind::kRing;
  ring.socket = frame.socket;
  ring.call = number;
  attendance->say(ring);
}

void Relay::Impl::take_taker(const RelayFrame& frame, StreamSocket socket) {
  const auto found = calls.find(frame.call);
  if (found == calls.end() || found->second.target != frame.client) return;
  const auto call = std::make_shared<Call>(std::move(found->second));
  calls.erase(found);
  RelayFrame open;
  open.kind = RelayFrame::Kind::kOpen;
  const auto bytes = std::make_shared<RelayFrameBytes>(write_relay_frame(open));
  const auto taker = std::make_shared<StreamSocket>(std::move(socket));
  asio::async_write(call->socket, asio::buffer(*bytes),
                    [call, bytes, taker](const error_code& failed, std::size_t) {
                      if (failed) return;
                      std::make_shared<Splice>(std::move(call->socket), std::move(*taker),
                                               call->counted)
                          ->begin();
                    });
}

Relay::Relay(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Relay::~Relay() {
  impl_->io.stop();
  impl_->thread.join();
}

Result<std::unique_ptr<Relay>> Relay::open(const RelayOptions& options) {
  try {
    auto impl = std::make_unique<Impl>(options);
    RETURN_IF_ERROR(impl->listen());
    impl->accept();
    ASSIGN_OR_RETURN(impl->thread,
                     start_thread("the relay", [impl = impl.get()] { impl->io.run(); }));
    return std::unique_ptr<Relay>(new Relay(std::move(impl)));
  } catch (const std::exception& failure) {
    return Error{ErrorKind::kUsage, fmt::format("cannot relay: {}", failure.what())};
  }
}

std::uint16_t Relay::port() const { return impl_->acceptor.local_endpoint().port(); }

void Relay::admit(std::uint32_t client, const RelayToken& token) {
  asio::post(impl_->io, [impl = impl_.get(), client, token] {
    // Another process has the client's number from now on, and the one before it is cut off.
    Client& known = impl->clients[client];
    known.token = token;
    if (const auto before = known.attendance.lock()) before->close();
  });
}

}  // namespace troupe::runtime
