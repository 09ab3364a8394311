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

// Of what a client has not read yet; more than calls can be made to it.
constexpr std::size_t kMostUnread = 4096;
// After an accept that failed, as without descriptors.
constexpr auto kAcceptPause = std::chrono::milliseconds(200);

// Takes as long for any two.
bool same(const RelayToken& one, const RelayToken& other) {
  std::byte difference{0};
  for (std::size_t i = 0; i < one.size(); ++i) difference |= one[i] ^ other[i];
  return difference == std::byte{0};
}

// A connection that has not said what it is for.
struct Guest {
  explicit Guest(StreamSocket connection)
      : socket(std::move(connection)), deadline(socket.get_executor()) {}
  StreamSocket socket;
  RelayFrameBytes frame{};
  asio::steady_timer deadline;
};

// A connection over which a client hears who calls. Its handlers own it.
class Attendance : public std::enable_shared_from_this<Attendance> {
 public:
  Attendance(StreamSocket socket, Duration silent_within)
      : socket_(std::move(socket)), silence_(socket_.get_executor()), within_(silent_within) {}

  void begin() {
    say({});
    listen();
  }
  void say(const RelayFrame& frame) {
    if (unread_.size() >= kMostUnread) return close();
    unread_.push_back(write_relay_frame(frame));
    if (unread_.size() == 1) send();
  }
  void close() {
    error_code ignored;
    socket_.close(ignored);
    silence_.cancel();
  }
  bool is_open() const { return socket_.is_open(); }

 private:
  void listen() {
    silence_.expires_after(within_);
    silence_.async_wait([self = shared_from_this()](const error_code& heard) {
      if (!heard) self->close();
    });
    asio::async_read(socket_, asio::buffer(frame_),
                     [self = shared_from_this()](const error_code& failed, std::size_t) {
                       const auto frame = read_relay_frame(self->frame_);
                       if (failed || !frame || frame->kind != RelayFrame::Kind::kSign) {
                         return self->close();
                       }
                       self->say({});
                       self->listen();
                     });
  }
  void send() {
    asio::async_write(socket_, asio::buffer(unread_.front()),
                      [self = shared_from_this()](const error_code& failed, std::size_t) {
                        if (failed) return self->close();
                        self->unread_.pop_front();
                        if (!self->unread_.empty()) self->send();
                      });
  }

  StreamSocket socket_;
  asio::steady_timer silence_;
  const Duration within_;
  RelayFrameBytes frame_{};
  std::deque<RelayFrameBytes> unread_;
};

// One more of a client's calls, as long as it lives.
class CountedCall {
 public:
  explicit CountedCall(std::shared_ptr<std::size_t> calls) : calls_(std::move(calls)) { ++*calls_; }
  ~CountedCall() { --*calls_; }
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;

 private:
  const std::shared_ptr<std::size_t> calls_;
};

struct Client {
  RelayToken token{};
  std::shared_ptr<std::size_t> calls = std::make_shared<std::size_t>(0);
  std::weak_ptr<Attendance> attendance;
};

// That waits to be taken.
struct Call {
  std::uint32_t target = 0;
  StreamSocket socket;
  std::shared_ptr<CountedCall> counted;
  std::unique_ptr<asio::steady_timer> deadline;
};

}  // namespace

struct Relay::Impl {
  explicit Impl(const RelayOptions& wanted) : options(wanted), acceptor(io), pause(io) {}

  Result<void> listen();
  void accept();
  void receive(StreamSocket socket);
  void take(Guest& guest);
  void take_call(const RelayFrame& frame, Client& caller, StreamSocket socket);
  void take_taker(const RelayFrame& frame, StreamSocket socket);

  const RelayOptions options;
  asio::io_context io{1};
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  std::list<std::shared_ptr<Guest>> guests;  // oldest first
  std::map<std::uint32_t, Client> clients;
  std::map<std::uint64_t, Call> calls;
  std::uint64_t last_call = 0;
  std::thread thread;
};

Result<void> Relay::Impl::listen() {
  std::string number = options.host;
  if (number.starts_with('[')) number = number.substr(1, number.size() - 2);
  error_code failed;
  const auto host = asio::ip::make_address(number, failed);
  if (!failed) acceptor.open(host.is_v6() ? tcp::v6() : tcp::v4(), failed);
  if (!failed) acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor.bind({host, options.port}, failed);
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
    error_code ignored;
    guests.front()->socket.close(ignored);
    guests.pop_front();
  }
  const auto guest = std::make_shared<Guest>(std::move(socket));
  guests.push_back(guest);
  guest->deadline.expires_after(options.answer_within);
  guest->deadline.async_wait([guest](const error_code& heard) {
    error_code ignored;
    if (!heard) guest->socket.close(ignored);
  });
  asio::async_read(guest->socket, asio::buffer(guest->frame),
                   [this, guest](const error_code& failed, std::size_t) {
                     guests.remove(guest);
                     guest->deadline.cancel();
                     if (!failed) take(*guest);
                   });
}

void Relay::Impl::take(Guest& guest) {
  const auto frame = read_relay_frame(guest.frame);
  const auto client = frame ? clients.find(frame->client) : clients.end();
  if (client == clients.end() || !same(client->second.token, frame->token)) {
    options.log.debug("the relay has cut off an unknown peer");
    return;
  }
  if (frame->kind == RelayFrame::Kind::kAttend) {
    if (const auto before = client->second.attendance.lock()) before->close();
    const auto attendance =
        std::make_shared<Attendance>(std::move(guest.socket), options.silent_within);
    client->second.attendance = attendance;
    attendance->begin();
  } else if (frame->kind == RelayFrame::Kind::kCall) {
    take_call(*frame, client->second, std::move(guest.socket));
  } else if (frame->kind == RelayFrame::Kind::kTake) {
    take_taker(*frame, std::move(guest.socket));
  }
}

// The caller may try again: whoever does not attend now may in a moment.
void Relay::Impl::take_call(const RelayFrame& frame, Client& caller, StreamSocket socket) {
  const auto target = clients.find(frame.other);
  if (target == clients.end() || frame.other == frame.client) return;
  if (*caller.calls >= options.most_calls) return;
  const auto attendance = target->second.attendance.lock();
  if (!attendance || !attendance->is_open()) return;
  const std::uint64_t number = ++last_call;
  auto deadline = std::make_unique<asio::steady_timer>(io, options.answer_within);
  deadline->async_wait([this, number](const error_code& taken) {
    if (!taken) calls.erase(number);
  });
  calls.emplace(number, Call{frame.other, std::move(socket),
                             std::make_shared<CountedCall>(caller.calls), std::move(deadline)});
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
    Client& known = impl->clients[client];
    known.token = token;
    if (const auto before = known.attendance.lock()) before->close();
  });
}

}  // namespace troupe::runtime
