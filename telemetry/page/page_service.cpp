#include <utility>  // Asio forgets it

#include "telemetry/page/page_service.h"

#include <fcntl.h>

#include <boost/asio/buffer.hpp>
#include <chrono>

#include "runtime/base/clock.h"

namespace troupe::telemetry {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kAcceptAgain = std::chrono::milliseconds(100);
constexpr auto kPartTime = std::chrono::milliseconds(200);

std::uint64_t start_number() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(runtime::wall_now().time_since_epoch())
          .count());
}

// Sends as much as the system takes at once, which is all of it on a new connection.
void turn_away(tcp::socket& socket) {
  const WebAnswer answer = refusal(503, "too many are watching; close some of them or try later");
  const std::string text = answer_head(answer, false) + *answer.text;
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(text), ignored);
}

}  // namespace

PageService::PageService(WebSite what, const PageLimits& most)
    : site(std::move(what)), limits(most), start(start_number()), questions(io, most.idle_time) {}

void PageService::accept() {
  acceptor.async_accept([this](const error_code& failed, tcp::socket socket) {
    if (!acceptor.is_open()) return;
    if (!failed) {
      // The next one first: there may be no memory to admit this one.
      accept();
      return admit(std::move(socket));
    }
    // The process has no file left for it. One may be free again in a moment.
    next_accept.expires_after(kAcceptAgain);
    next_accept.async_wait([this](const error_code& stopped) {
      if (!stopped) accept();
    });
  });
}

void PageService::admit(tcp::socket socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  if (connections.size() >= limits.connections) return turn_away(socket);
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::send_buffer_size(static_cast<int>(limits.send_buffer_bytes)),
                    ignored);
  std::make_shared<PageConnection>(std::move(socket), *this)->read();
  tick_later();
}

// All followers are told at the same moments, so that they share the texts.
void PageService::tick_later() {
  if (ticks_ || connections.empty()) return;
  ticks_ = true;
  next_tick.expires_after(limits.update_time);
  next_tick.async_wait([this](const error_code& stopped) {
    ticks_ = false;
    if (stopped) return;
    tick_later();
    tick();
  });
}

void PageService::tick() {
  questions.give_up(runtime::steady_now());
  for (PageConnection* const one : connections) one->tell_news();
}

void PageService::stop() {
  error_code ignored;
  acceptor.close(ignored);
  next_accept.cancel();
  next_tick.expires_after(kPartTime);
  next_tick.async_wait([this](const error_code&) {
    for (PageConnection* const one : connections) one->close();
  });
  for (PageConnection* const one : connections) one->part();
  if (connections.empty()) next_tick.cancel();
}

void PageService::forget(PageConnection* connection) {
  connections.erase(connection);
  if (connections.empty() && !acceptor.is_open()) next_tick.cancel();
}

}  // namespace troupe::telemetry
