#include "telemetry/sinks/publisher.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <zmq.h>

#include <fmt/format.h>

#include "runtime/base/descriptor.h"
#include "runtime/base/host_port.h"
#include "runtime/base/socket_path.h"

namespace troupe::telemetry {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr int kMostSubscriptionBytes = 1024;
constexpr std::size_t kMostAddressBytes = 400;
constexpr std::string_view kIpc = "ipc://", kTcp = "tcp://";
// The library ends the process when its threads find none.
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

// What the library is to bind.
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
  void* context = nullptr;
  void* socket = nullptr;

  ~Sockets() {
    if (socket != nullptr) ::zmq_close(socket);
    // Returns at once: nothing lingers.
    if (context != nullptr) ::zmq_ctx_term(context);
  }
  void set(int option, int value) { ::zmq_setsockopt(socket, option, &value, sizeof value); }
};

Publisher::Publisher(std::unique_ptr<Sockets> sockets) : sockets_(std::move(sockets)) {}

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
  auto sockets = std::make_unique<Sockets>();
  if (runtime::descriptors_left(kDescriptors)) sockets->context = ::zmq_ctx_new();
  if (sockets->context != nullptr) sockets->socket = ::zmq_socket(sockets->context, ZMQ_PUB);
  if (sockets->socket == nullptr) {
    return runtime::out_of_descriptors(ErrorKind::kInternal,
                                       fmt::format("publishing at {}", options.address));
  }
  sockets->set(ZMQ_LINGER, 0);
  sockets->set(ZMQ_SNDHWM, std::max(options.waiting, 1));
  sockets->set(ZMQ_IPV6, wanted.starts_with("tcp://[") ? 1 : 0);
  // Subscribers send nothing but what they subscribe to.
  const std::int64_t most_bytes = kMostSubscriptionBytes;
  ::zmq_setsockopt(sockets->socket, ZMQ_MAXMSGSIZE, &most_bytes, sizeof most_bytes);
  sockets->set(ZMQ_XPUB_NODROP, 1);  // tells of loss, see push()
  if (::zmq_bind(sockets->socket, wanted.c_str()) != 0) {
    const int cause = ::zmq_errno();
    return refused(options.address,
                   fmt::format("{}{}", ::zmq_strerror(cause),
                               cause == EADDRINUSE ? "; choose another port, or * for any" : ""));
  }
  std::array<char, 512> bound = {};
  std::size_t size = bound.size();
  ::zmq_getsockopt(sockets->socket, ZMQ_LAST_ENDPOINT, bound.data(), &size);
  std::unique_ptr<Publisher> publisher(new Publisher(std::move(sockets)));
  publisher->address_ = bound.data();
  if (publisher->address_.starts_with(kIpc) &&
      ::chmod(publisher->address_.c_str() + kIpc.size(), 0600) != 0) {
    return refused(options.address, "the path cannot be kept from other users");
  }
  return publisher;
}

void Publisher::send(std::string_view topic, std::string_view body) {
  push(topic, ZMQ_SNDMORE);
  push(body, 0);
}

// With NODROP the library takes nothing while a subscriber has no room, and says so; without, it
// leaves that subscriber out and serves the others.
void Publisher::push(std::string_view frame, int flags) {
  const auto send = [&] {
    int taken = 0;
    do {
      taken = ::zmq_send(sockets_->socket, frame.data(), frame.size(), flags | ZMQ_DONTWAIT);
    } while (taken < 0 && ::zmq_errno() == EINTR);
    return taken >= 0;
  };
  if (send()) return;
  // The library looks once in a while what subscribers have read meanwhile; now, when asked.
  int events = 0;
  std::size_t size = sizeof events;
  ::zmq_getsockopt(sockets_->socket, ZMQ_EVENTS, &events, &size);
  if (send()) return;
  ++losses_;
  sockets_->set(ZMQ_XPUB_NODROP, 0);
  send();
  sockets_->set(ZMQ_XPUB_NODROP, 1);
}

}  // namespace troupe::telemetry
