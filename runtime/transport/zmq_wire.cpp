#include "runtime/transport/zmq_wire.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>

#include "runtime/base/descriptor.h"
#include "runtime/transport/resolve.h"
#include "runtime/transport/zmq_admission.h"
#include "runtime/transport/zmq_dialer.h"
#include "runtime/transport/zmq_listener.h"
#include "runtime/transport/zmq_traffic.h"

namespace troupe::runtime {
namespace {

Error usage(std::string message) { return Error{ErrorKind::kUsage, std::move(message)}; }

Result<void> check(const ZmqWireOptions& options) {
  CHECK(options.clock != nullptr, "a wire needs a clock");
  if (options.keys && !(is_key(options.keys->public_key) && is_key(options.keys->secret_key))) {
    return usage("the node's own keys are not keys: make some with 'troupe keygen'");
  }
  if (!options.server_key.empty() && !is_key(options.server_key)) {
    return usage("the key of the other end is not a key: it has 64 hexadecimal digits");
  }
  return {};
}

// Threads of the library that move bytes to and from the system. One carries some 1 to 3 GB/s.
int io_threads() { return std::thread::hardware_concurrency() < 4 ? 1 : 2; }

// A wait is told in milliseconds; a wait never ends before its time.
long milliseconds_until(TimePoint until, TimePoint now) {
  if (until <= now) return 0;
  if (until == TimePoint::max()) return -1;
  constexpr std::chrono::hours kLong{24};
  const Duration left = std::min<Duration>(until - now, kLong);
  return static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

}  // namespace

struct ZmqWire::Impl {
  // Takes over the descriptor.
  Impl(const ZmqWireOptions& wire_options, std::unique_ptr<ZmqContext> library, Descriptor wake)
      : options(wire_options), context(std::move(library)), wakes(std::move(wake)) {}
  ~Impl();

  Result<ResolvedAddress> lead(const Address& address);
  void serve();
  void wait(TimePoint until);

  const ZmqWireOptions options;
  std::unique_ptr<ZmqContext> context;  // outlives the sockets below
  const Descriptor wakes;               // an eventfd
  ZmqSink sink;                         // outlives the connections below
  std::unique_ptr<ZmqAdmission> admission;
  std::unique_ptr<ZmqListener> listener;
  std::map<ConnectionId, std::unique_ptr<ZmqDialer>> dialers;
  std::map<std::string, ResolvedAddress> led_to;  // by Address::text()
};

// Often both ends go at once. A moment's look at who is gone already then saves the linger.
ZmqWire::Impl::~Impl() {
  constexpr long kMomentMs = 10;
  std::vector<ZmqSocket*> sockets;
  for (auto& [id, dialer] : dialers) {
    dialer->part();
    dialer->add_to(sockets);
  }
  if (!sockets.empty()) wait_for_any(sockets, {wakes.number()}, kMomentMs);
  for (auto& [id, dialer] : dialers) dialer->drop_if_lost();
  if (options.ucx == nullptr) return;
  dialers.clear();
  listener.reset();
  options.ucx->drain();
}

Result<ResolvedAddress> ZmqWire::Impl::lead(const Address& address) {
  const std::string text = address.text();
  const auto known = led_to.find(text);
  if (known != led_to.end()) return known->second;
  ASSIGN_OR_RETURN(ResolvedAddress resolved, options.resolve(address));
  return led_to.emplace(text, std::move(resolved)).first->second;
}

// Admission comes first, as handshakes of the listener wait for its answers.
void ZmqWire::Impl::serve() {
  const TimePoint now = options.clock->now();
  if (options.ucx != nullptr) options.ucx->progress();
  if (admission != nullptr) admission->serve();
  if (listener != nullptr) listener->serve(now);
  for (auto& [id, dialer] : dialers) dialer->serve(now);
  std::erase_if(dialers, [](const auto& dialer) { return dialer.second->ended(); });
}

void ZmqWire::Impl::wait(TimePoint until) {
  std::vector<ZmqSocket*> sockets;
  if (admission != nullptr) sockets.push_back(admission->socket());
  if (listener != nullptr) {
    listener->add_to(sockets);
    until = std::min(until, listener->next_deadline());
  }
  for (auto& [id, dialer] : dialers) {
    dialer->add_to(sockets);
    until = std::min(until, dialer->next_deadline());
  }
  UcxFabric::Wait ucx;
  if (options.ucx != nullptr) {
    ucx = options.ucx->before_wait();
    until = std::min(until, options.ucx->next_deadline());
  }
  const TimePoint now = options.clock->now();
  if (ucx.at_most < until - now) until = now + ucx.at_most;
  wait_for_any(sockets, {wakes.number(), ucx.descriptor},
               sink.has_news() ? 0 : milliseconds_until(until, now));
  std::uint64_t count = 0;
  // Wakes that came until now are over with this poll.
  [[maybe_unused]] const ssize_t taken = ::read(wakes.number(), &count, sizeof(count));
}

namespace {

ZmqAdmission::AllowList who_is_allowed(const ZmqWireOptions& options) {
  if (options.allowed_now) return options.allowed_now;
  return [allowed = options.allowed] { return allowed; };
}

}  // namespace

ZmqWire::ZmqWire(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ZmqWire::~ZmqWire() = default;

Result<std::unique_ptr<ZmqWire>> ZmqWire::open(const ZmqWireOptions& options) {
  RETURN_IF_ERROR(check(options));
  ASSIGN_OR_RETURN(auto context, ZmqContext::open(io_threads()));
  Descriptor wakes(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wakes.is_open()) return out_of_descriptors();
  auto impl = std::make_unique<Impl>(options, std::move(context), std::move(wakes));
  if (!options.listen.empty()) {
    if (options.keys) {
      ASSIGN_OR_RETURN(impl->admission, ZmqAdmission::open(*impl->context, who_is_allowed(options),
                                                           options.wall_time, options.log));
    }
    ASSIGN_OR_RETURN(impl->listener, ZmqListener::open(*impl->context, impl->options, impl->sink));
  }
  return std::unique_ptr<ZmqWire>(new ZmqWire(std::move(impl)));
}

std::string ZmqWire::address() const {
  return impl_->listener != nullptr ? impl_->listener->address() : "";
}

// A key in the address goes before that of the options. All is checked before the dialer exists, so
// that nothing ever leaves the machine in the clear. The sink hears of the connection last, for a
// dial that fails has none.
Result<ConnectionId> ZmqWire::dial(const std::string& text) {
  ASSIGN_OR_RETURN(Address address, parse_address(text));
  if (address.kind == Address::Kind::kTcp && address.port == 0) {
    return usage(fmt::format("cannot dial {}: it names no port", without_key(text)));
  }
  ASSIGN_OR_RETURN(ResolvedAddress resolved, impl_->lead(address));
  const std::string key = address.key.empty() ? impl_->options.server_key : address.key;
  if (!key.empty() && !impl_->options.keys) {
    return usage(
        fmt::format("cannot dial {} with its key: this node has no keys of its own; make "
                    "some with 'troupe keygen' and name them",
                    address.text()));
  }
  if (key.empty() && !resolved.loopback) {
    return usage(
        fmt::format("will not dial {} without keys, since it is another machine; make "
                    "keys with 'troupe keygen' on both and name the other one's public "
                    "key",
                    address.text()));
  }
  const ConnectionId id = impl_->sink.next_id();
  ASSIGN_OR_RETURN(auto dialer, ZmqDialer::begin(*impl_->context, impl_->options, impl_->sink, id,
                                                 {std::move(address), std::move(resolved), key}));
  impl_->sink.dialed(id);
  impl_->dialers.emplace(id, std::move(dialer));
  return id;
}

void ZmqWire::send(ConnectionId connection, Lane lane, Packet packet) {
  const auto dialer = impl_->dialers.find(connection);
  if (dialer != impl_->dialers.end()) return dialer->second->send(lane, packet);
  if (impl_->listener != nullptr) impl_->listener->send(connection, lane, packet);
}

void ZmqWire::close(ConnectionId connection) {
  impl_->sink.closed(connection);
  if (impl_->dialers.erase(connection) == 0 && impl_->listener != nullptr) {
    impl_->listener->close(connection);
  }
}

void ZmqWire::poll(WireEvents& events, TimePoint until) {
  impl_->wait(until);
  impl_->serve();
  impl_->sink.tell(events);
}

void ZmqWire::wake() {
  const std::uint64_t one = 1;
  // Full means that it is awake anyhow.
  [[maybe_unused]] const ssize_t written = ::write(impl_->wakes.number(), &one, sizeof(one));
}

ZmqWireCounters ZmqWire::counters() const { return impl_->sink.counters; }

}  // namespace troupe::runtime
