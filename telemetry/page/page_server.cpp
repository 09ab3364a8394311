#include <utility>  // Asio forgets it

#include "telemetry/page/page_server.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <thread>

#include <fmt/format.h>

#include "runtime/base/clock.h"
#include "runtime/base/host_name.h"
#include "runtime/base/host_port.h"
#include "runtime/base/start_thread.h"
#include "telemetry/page/page_service.h"

namespace troupe::telemetry {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr int kPortsToTry = 100;
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

Result<asio::ip::address> resolve(const std::string& host, asio::io_context& io) {
  error_code failed;
  if (host == "*") return asio::ip::address(asio::ip::address_v4::any());
  const auto number = asio::ip::make_address(host, failed);
  if (!failed) return number;
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(host, "", tcp::resolver::passive, failed);
  if (failed || found.empty()) {
    return Error{ErrorKind::kUsage,
                 fmt::format("cannot listen at {}: no such host ({})", host, failed.message())};
  }
  return found.begin()->endpoint().address();
}

Result<void> check_reach(const asio::ip::address& address, const PageServerOptions& options) {
  if (address.is_loopback() || !options.token.empty()) return {};
  return Error{ErrorKind::kUsage,
               fmt::format("the page would be open to everybody at {}: give it a token "
                           "(actors.monitor.token of a topology, or --token FILE of a verb that "
                           "serves it), or listen at 127.0.0.1 and reach it from elsewhere by ssh "
                           "-L 8400:127.0.0.1:8400",
                           options.listen)};
}

error_code listen(tcp::acceptor& acceptor, const tcp::endpoint& at) {
  error_code failed;
  acceptor.open(at.protocol(), failed);
  if (failed) return failed;
  ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor.bind(at, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  error_code ignored;
  if (failed) acceptor.close(ignored);
  return failed;
}

Result<void> listen_somewhere(tcp::acceptor& acceptor, const asio::ip::address& address,
                              std::uint16_t port, const PageServerOptions& options) {
  const int tries = options.next_free_port && port != 0 ? kPortsToTry : 1;
  error_code failed;
  for (int i = 0; i < tries && port + i <= 65535; ++i) {
    failed = listen(acceptor, {address, static_cast<std::uint16_t>(port + i)});
    if (failed != asio::error::address_in_use) break;
  }
  if (!failed) return {};
  const char* const what_to_do =
      failed == asio::error::address_in_use ? "another port will do, or 0 for any that is free"
      : failed == asio::error::access_denied
          ? "ports below 1024 are the system's: take one above"
          : "is this an address of this host? 127.0.0.1 is one, 0.0.0.0 means all of them";
  return Error{ErrorKind::kUsage, fmt::format("cannot listen at {}: {}; {}", options.listen,
                                              failed.message(), what_to_do)};
}

// Clients take a quarter of the process's descriptors at most, and leave the rest to the run.
PageLimits limits_here(PageLimits limits) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY) {
    limits.connections = std::min(limits.connections, std::max<std::size_t>(files.rlim_cur / 4, 8));
  }
  return limits;
}

std::string host_to_show(const runtime::HostPort& address, const asio::ip::address& bound) {
  if (!bound.is_unspecified()) return address.host;
  const std::string name = runtime::host_name();
  return name.empty() ? address.host : name;
}

void run(PageService& service) {
  ::pthread_setname_np(::pthread_self(), "page");  // for people with a debugger
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), PageServer::kNice);
  while (!service.io->stopped()) {
    try {
      service.io->run();
    } catch (const std::exception&) {
      // There was no memory, as a rule. The connection that it was for is gone with its handler.
    }
  }
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

// Those that follow events have kPartTime for their last one, and all others are closed at once.
// The thread ends when nothing is left to wait for.
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

PageServer::PageServer() = default;

PageServer::~PageServer() {
  if (!thread_.joinable()) return;
  asio::post(*service_->io, [service = service_.get()] { service->stop(); });
  thread_.join();
}

Result<std::unique_ptr<PageServer>> PageServer::open(const PageServerOptions& options,
                                                     std::vector<RunSource> runs) {
  for (const RunSource& run : runs) CHECK(run.history != nullptr, "a run without a history");
  auto wanted = runtime::parse_host_port(options.listen);
  if (!wanted.ok()) {
    return Error{ErrorKind::kUsage,
                 fmt::format("'{}' is no address to listen at: {}; such as 127.0.0.1:8400 or "
                             "[::1]:8400",
                             options.listen, wanted.error().message)};
  }
  runtime::HostPort& address = *wanted;
  WebSite site{options.version,
               options.assets,
               {options.token, "", options.control},
               std::move(runs),
               options.front};
  std::unique_ptr<PageServer> server(new PageServer);
  server->service_ = std::make_unique<PageService>(std::move(site), limits_here(options.limits));
  PageService& service = *server->service_;
  ASSIGN_OR_RETURN(const asio::ip::address bound, resolve(address.host, *service.io));
  RETURN_IF_ERROR(check_reach(bound, options));
  RETURN_IF_ERROR(listen_somewhere(service.acceptor, bound, address.port, options));
  error_code ignored;
  // The port is known when the server listens, and cookie and address have it in them. The thread
  // comes last, as nobody else may touch the service after that.
  server->port_ = address.port = service.acceptor.local_endpoint(ignored).port();
  service.site.access.cookie = fmt::format("troupe_{}", address.port);
  address.host = host_to_show(address, bound);
  server->address_ = fmt::format("http://{}/", address.text());
  service.accept();
  ASSIGN_OR_RETURN(server->thread_,
                   runtime::start_thread("the page", [&service] { run(service); }));
  return server;
}

}  // namespace troupe::telemetry
