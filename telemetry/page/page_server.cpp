#include <utility>  // Asio forgets it

#include "telemetry/page/page_server.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <thread>

#include <fmt/format.h>

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
                           "(actors.monitor.token of a topology, or troupe watch --token), or "
                           "listen at 127.0.0.1 and reach it "
                           "from elsewhere by ssh -L 8400:127.0.0.1:8400",
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
  WebSite site{options.version, options.assets, {options.token, ""}, std::move(runs)};
  std::unique_ptr<PageServer> server(new PageServer);
  server->service_ = std::make_unique<PageService>(std::move(site), limits_here(options.limits));
  PageService& service = *server->service_;
  ASSIGN_OR_RETURN(const asio::ip::address bound, resolve(address.host, *service.io));
  RETURN_IF_ERROR(check_reach(bound, options));
  RETURN_IF_ERROR(listen_somewhere(service.acceptor, bound, address.port, options));
  error_code ignored;
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
