#include <utility>  // Asio forgets it

#include "runtime/relay/splice.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>

namespace troupe::runtime {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kBufferBytes = std::size_t{64} << 10;
// After one end has ended, the other may say so long what it has to say.
constexpr auto kLastWordsWithin = std::chrono::seconds(5);

void set(int socket, int name, int value) {
  (void)::setsockopt(socket, IPPROTO_TCP, name, &value, sizeof value);
}

}  // namespace

asio::ip::tcp::endpoint relay_endpoint(std::string_view host, std::uint16_t port,
                                       error_code& failed) {
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return {asio::ip::make_address(host, failed), port};
}

void prepare_for_relay(StreamSocket& socket) {
  const int number = socket.native_handle();
  const int on = 1;
  (void)::setsockopt(number, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  constexpr int kIdleSeconds = 20, kPauseSeconds = 10, kProbes = 3;
  constexpr int kUnansweredMs = 50'000;
  set(number, TCP_NODELAY, 1);
  set(number, TCP_KEEPIDLE, kIdleSeconds);
  set(number, TCP_KEEPINTVL, kPauseSeconds);
  set(number, TCP_KEEPCNT, kProbes);
  set(number, TCP_USER_TIMEOUT, kUnansweredMs);
}

void Line::close() {
  error_code ignored;
  socket.close(ignored);
  deadline.cancel();
}

void Line::close_after(Duration time) {
  deadline.expires_after(time);
  // A wait that has ended cannot be cancelled any more, though its line was given another time.
  deadline.async_wait([self = shared_from_this()](const error_code& stopped) {
    if (!stopped && self->deadline.expiry().time_since_epoch() <= steady_now()) self->close();
  });
}

Splice::Splice(StreamSocket one, StreamSocket other, std::shared_ptr<void> kept)
    : sockets_{std::move(one), std::move(other)},
      last_words_(sockets_[0].get_executor()),
      kept_(std::move(kept)) {
  for (auto& buffer : buffers_) buffer.resize(kBufferBytes);
}

void Splice::begin() {
  read(0);
  read(1);
}

void Splice::read(std::size_t from) {
  sockets_[from].async_read_some(
      asio::buffer(buffers_[from]),
      [self = shared_from_this(), from](const error_code& failed, std::size_t bytes) {
        if (!failed) {
          self->write(from, bytes);
        } else if (failed == asio::error::eof) {
          self->end_of(from);
        } else {
          self->close();
        }
      });
}

void Splice::write(std::size_t from, std::size_t bytes) {
  asio::async_write(sockets_[1 - from], asio::buffer(buffers_[from], bytes),
                    [self = shared_from_this(), from](const error_code& failed, std::size_t) {
                      failed ? self->close() : self->read(from);
                    });
}

// One direction has ended. The other end is told so, and its own direction goes on for a while.
void Splice::end_of(std::size_t from) {
  error_code ignored;
  sockets_[1 - from].shutdown(StreamSocket::shutdown_send, ignored);
  if (++ended_ == 2) return close();
  last_words_.expires_after(kLastWordsWithin);
  last_words_.async_wait([self = shared_from_this()](const error_code& stopped) {
    if (!stopped) self->close();
  });
}

void Splice::close() {
  error_code ignored;
  for (StreamSocket& socket : sockets_) socket.close(ignored);
  last_words_.cancel();
}

}  // namespace troupe::runtime
