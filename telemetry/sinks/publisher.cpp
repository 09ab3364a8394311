#include "telemetry/sinks/publisher.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include <arpa/inet.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <fmt/format.h>
#include <zmq.hpp>

#include "runtime/base/descriptor.h"
#include "runtime/base/host_port.h"
#include "runtime/base/socket_path.h"

namespace troupe::telemetry {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr std::int64_t kMostSubscriptionBytes = 1024;  // they send nothing else
constexpr std::size_t kMostAddressBytes = 400;
constexpr std::string_view kIpc = "ipc://", kTcp = "tcp://";
// So many are needed. The library ends the process when its threads find none.
constexpr std::size_t kDescriptors = 16;

Error refused(const std::string& address, std::string_view why) {
  return Error{ErrorKind::kUsage, fmt::format("cannot publish at {}: {}", address, why)};
}

bool is_loopback(const std::string& host) {
  in_addr number{};
  return host == "localhost" || host == "::1" ||
         (host.starts_with("127.") && ::inet_pton(AF_INET, host.c_str(), &number) == 1);
}

bool is_ipc(const std::string& address) {
  return address.starts_with(kIpc) && address.size() > kIpc.size() && address[kIpc.size()] != '@';
}

// The address as the library is to bind it.
Result<std::string> endpoint(const std::string& address) {
  if (address.size() > kMostAddressBytes) {
    return Error{ErrorKind::kUsage, "cannot publish: the address is too long for one"};
  }
  if (is_ipc(address)) {
    constexpr std::size_t kMost = sizeof sockaddr_un::sun_path - 1;
    const std::size_t length = address.size() - kIpc.size();
    if (length <= kMost) return address;
    return refused(address, fmt::format("the path has {} characters, and the system allows {}",
                                        length, kMost));
  }
  const bool is_tcp = address.starts_with(kTcp);
  // The library's own parser takes 70000 for 4464.
  std::string place = is_tcp ? address.substr(kTcp.size()) : "";
  if (place.ends_with(":*")) place.back() = '0';
  const auto at = runtime::parse_host_port(place);
  if (!at.ok()) {
    return refused(address,
                   "an address is tcp://127.0.0.1:PORT or ipc://PATH, the port * for any free one");
  }
  const std::string port = at->port == 0 ? "*" : fmt::format("{}", at->port);
  if (!is_loopback(at->host)) {
    return refused(address, fmt::format("nothing is encrypted, so only this machine is served: "
                                        "publish at tcp://127.0.0.1:{}, and let another reach it "
                                        "through a tunnel, ssh -L {}:127.0.0.1:{} THIS-HOST",
                                        port, port, port));
  }
  const std::string host = at->host == "localhost" ? "127.0.0.1" : runtime::bracketed(at->host);
  return fmt::format("tcp://{}:{}", host, port);
}

}  // namespace

struct Publisher::Sockets {
  zmq::context_t context{1};
  zmq::socket_t socket{context, zmq::socket_type::pub};
  std::optional<runtime::SocketFile> file;
};

Publisher::Publisher() : sockets_(std::make_unique<Sockets>()) {}

Publisher::~Publisher() = default;

Result<void> Publisher::check_address(const std::string& address) {
  RETURN_IF_ERROR(endpoint(address));
  return {};
}

Result<std::unique_ptr<Publisher>> Publisher::open(const PublisherOptions& options) {
  ASSIGN_OR_RETURN(const std::string wanted, endpoint(options.address));
  if (is_ipc(wanted)) {
    const auto free = runtime::check_socket_path(wanted.substr(kIpc.size()));
    if (!free.ok()) return refused(options.address, free.error().message);
  }
  const auto no_descriptors = [&] {
    return runtime::out_of_descriptors(ErrorKind::kInternal, "publishing at " + options.address);
  };
  if (!runtime::descriptors_left(kDescriptors)) return no_descriptors();
  std::unique_ptr<Publisher> publisher;
  try {
    publisher.reset(new Publisher);
    zmq::socket_t& socket = publisher->sockets_->socket;
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::sndhwm, std::max(options.waiting, 1));
    socket.set(zmq::sockopt::ipv6, wanted.starts_with("tcp://["));
    socket.set(zmq::sockopt::maxmsgsize, kMostSubscriptionBytes);
    socket.bind(wanted);
    publisher->address_ = socket.get(zmq::sockopt::last_endpoint);
  } catch (const zmq::error_t& failure) {
    // The exception is not asked: sanitizers need a descriptor to look into one.
    const int cause = ::zmq_errno();
    if (runtime::is_out_of_descriptors(cause)) return no_descriptors();
    return refused(options.address,
                   fmt::format("{}{}", failure.what(),
                               cause == EADDRINUSE ? "; choose another port, or * for any" : ""));
  }
  const std::string& bound = publisher->address_;
  publisher->sockets_->file.emplace(bound);
  if (bound.starts_with(kIpc) && ::chmod(bound.c_str() + kIpc.size(), 0600) != 0) {
    return refused(options.address, "the path cannot be kept from other users");
  }
  return publisher;
}

// The library leaves out a subscriber that has no room.
void Publisher::send(std::string_view topic, std::string_view body) {
  void* const socket = sockets_->socket.handle();
  ::zmq_send(socket, topic.data(), topic.size(), ZMQ_SNDMORE | ZMQ_DONTWAIT);
  ::zmq_send(socket, body.data(), body.size(), ZMQ_DONTWAIT);
}

}  // namespace troupe::telemetry
