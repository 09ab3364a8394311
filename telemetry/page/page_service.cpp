#include <utility>  // Asio forgets it

#include "telemetry/page/page_service.h"

#include <fcntl.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <vector>

#include "runtime/base/clock.h"

namespace troupe::telemetry {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kAcceptAgain = std::chrono::milliseconds(100);
constexpr auto kPartAgain = std::chrono::milliseconds(5);
constexpr int kPartTries = 40;

std::uint64_t start_number() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(runtime::wall_now().time_since_epoch())
          .count());
}

// As much of it as the system takes at once, which is all of it on a new connection.
void turn_away(tcp::socket& socket) {
  const WebAnswer answer = refusal(503, "too many are watching; close some of them or try later");
  const std::string text = answer_head(answer, false) + *answer.text;
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(text), ignored);
}

}  // namespace

PageService::PageService(WebSite what, const PageLimits& most)
    : site(std::move(what)), limits(most), start(start_number()) {}

std::shared_ptr<PageService> PageService::make(WebSite what, const PageLimits& most) {
  auto service = std::make_shared<PageService>(std::move(what), most);
  // A run may answer when nobody is there any more, neither a client nor the service.
  service->questions.emplace(
      [weak = std::weak_ptr(service)](std::function<void()> work) {
        const auto alive = weak.lock();
        if (alive == nullptr) return;
        asio::post(alive->io, [service = alive.get(), work = std::move(work)] {
          work();
          service->tick_if_needed();
        });
      },
      most.asking_time);
  return service;
}

void PageService::accept() {
  acceptor.async_accept([this](const error_code& failed, tcp::socket socket) {
    if (!acceptor.is_open()) return;
    // The process has no file left for it; another will be closed.
    if (failed) return accept_later();
    const auto now = runtime::steady_now();
    if (now - arrived_since_ >= kAcceptAgain) {
      arrived_since_ = now;
      arrived_ = 0;
    }
    // The next one first: there may be no memory to admit this one.
    if (++arrived_ < limits.arrivals) {
      accept();
    } else {
      accept_later();
    }
    admit(std::move(socket));
  });
}

void PageService::accept_later() {
  next_accept_.expires_after(kAcceptAgain);
  next_accept_.async_wait([this](const error_code& stopped) {
    if (!stopped && acceptor.is_open()) accept();
  });
}

void PageService::admit(tcp::socket socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  if (connections.size() >= limits.connections) {
    Connection first;
    for (const Connection& one : connections) {
      if (!one->makes_way()) continue;
      if (first == nullptr || *one->makes_way() < *first->makes_way()) first = one;
    }
    if (first == nullptr) return turn_away(socket);
    first->close();
  }
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::send_buffer_size(static_cast<int>(limits.send_buffer_bytes)),
                    ignored);
  const auto connection = std::make_shared<PageConnection>(std::move(socket), *this);
  connections.insert(connection);
  connection->begin();
  tick_if_needed();
}

void PageService::tick_if_needed() {
  if (ticking_ || !acceptor.is_open()) return;
  if (!connections.empty() || questions->keeps_answers()) tick_later();
}

void PageService::tick_later() {
  ticking_ = true;
  next_tick_.expires_after(limits.update_time);
  next_tick_.async_wait([this](const error_code& stopped) {
    ticking_ = false;
    if (!stopped && acceptor.is_open()) tick();
  });
}

void PageService::tick() {
  // Before anything that may throw: without ticks nobody would be closed.
  tick_if_needed();
  const auto now = runtime::steady_now();
  questions->tidy(now);
  const std::vector<Connection> all(connections.begin(), connections.end());
  for (const Connection& connection : all) connection->tick(now);
}

void PageService::make_room(const TextBudget::Text& text, const PageConnection* for_whom) {
  const std::size_t cost = budget.cost(text);
  while (cost > 0 && budget.bytes() > 0 && budget.bytes() + cost > limits.text_bytes) {
    Connection slowest;
    for (const Connection& one : connections) {
      if (one.get() == for_whom || !one->sending_since()) continue;
      if (slowest == nullptr || *one->sending_since() < *slowest->sending_since()) slowest = one;
    }
    if (slowest == nullptr) return;
    slowest->close();
  }
}

void PageService::stop() {
  error_code ignored;
  acceptor.close(ignored);
  next_accept_.cancel();
  next_tick_.cancel();
  part(kPartTries);
}

void PageService::part(int tries) {
  try {
    const std::vector<Connection> all(connections.begin(), connections.end());
    for (const Connection& connection : all) {
      if (connection->say_last() || tries == 0) connection->close();
    }
    if (connections.empty()) return io.stop();
    next_tick_.expires_after(kPartAgain);
    next_tick_.async_wait([this, tries](const error_code&) { part(tries - 1); });
  } catch (const std::exception&) {
    io.stop();
  }
}

}  // namespace troupe::telemetry
