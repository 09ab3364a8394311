#include <utility>  // Asio forgets it

#include "runtime/relay/relay_client.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "runtime/base/start_thread.h"
#include "runtime/relay/relay_frames.h"
#include "runtime/relay/splice.h"
#include "runtime/transport/resolve.h"

namespace troupe::runtime {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Local = asio::local::stream_protocol;

constexpr auto kPause = std::chrono::milliseconds(200);
// Longer than whoever dials a door waits for an answer, so that it is the one to hang up: a
// listener that does so during a handshake is given up after a few times.
constexpr auto kCallWithin = std::chrono::seconds(15);

// Through the relay, however often it rings.
constexpr long kMostConnections = 4096;

}  // namespace

struct RelayClient::Impl {
  explicit Impl(const RelayClientOptions& wanted) : options(wanted), pause(io), next_sign(io) {}

  // On a new connection, which begins with the frame; `done` hears whether it could be said.
  void dial(const RelayFrame& frame, const LinePointer& line, std::function<void(bool)> done);
  RelayFrame introduction(RelayFrame::Kind kind) const;

  void attend();
  void attend_again(const LinePointer& line);
  void listen(const LinePointer& line);
  void give_sign(const LinePointer& line);
  void answer(const RelayFrame& ring);

  struct Door {
    std::uint32_t client = 0;
    std::vector<std::unique_ptr<Local::acceptor>> acceptors;
  };
  Result<void> open(Door& door, SocketId id);
  void accept(Door& door, SocketId id);
  // Until it is answered, or too late.
  void call(const std::shared_ptr<StreamSocket>& caller, std::uint32_t client, SocketId id,
            TimePoint until);

  const RelayClientOptions options;
  asio::io_context io{1};
  StreamSocket::endpoint_type relay;
  asio::steady_timer pause, next_sign;
  std::atomic<bool> attends = false;
  bool told = false;
  // Held by whatever is passed on, or is about to be.
  const std::shared_ptr<void> alive = std::make_shared<int>(0);
  std::map<std::uint32_t, Door> doors;
  std::thread thread;
};

RelayFrame RelayClient::Impl::introduction(RelayFrame::Kind kind) const {
  RelayFrame frame;
  frame.kind = kind;
  frame.client = options.client;
  frame.token = options.token;
  return frame;
}

void RelayClient::Impl::dial(const RelayFrame& frame, const LinePointer& line,
                             std::function<void(bool)> done) {
  const auto bytes = std::make_shared<RelayFrameBytes>(write_relay_frame(frame));
  line->close_after(kCallWithin);
  line->socket.async_connect(relay, [line, bytes,
                                     done = std::move(done)](const error_code& failed) {
    if (failed) return done(false);
    prepare_for_relay(line->socket);
    asio::async_write(line->socket, asio::buffer(*bytes),
                      [line, bytes, done](const error_code& lost, std::size_t) { done(!lost); });
  });
}

void RelayClient::Impl::attend() {
  const auto line = std::make_shared<Line>(StreamSocket(io));
  dial(introduction(RelayFrame::Kind::kAttend), line, [this, line](bool said) {
    if (!said) return attend_again(line);
    give_sign(line);
    listen(line);
  });
}

void RelayClient::Impl::attend_again(const LinePointer& line) {
  line->close();
  next_sign.cancel();
  // Told when the relay is lost, and the first time that it is not reached at all.
  if (attends.exchange(false) || !std::exchange(told, true)) {
    options.log.info(
        fmt::format("the relay at {} port {} is not there, or does not know this "
                    "process; it is tried again",
                    options.host, options.port));
  }
  pause.expires_after(kPause);
  pause.async_wait([this](const error_code& stopped) {
    if (!stopped) attend();
  });
}

void RelayClient::Impl::listen(const LinePointer& line) {
  line->close_after(options.silent_within);
  asio::async_read(
      line->socket, asio::buffer(line->frame), [this, line](const error_code& failed, std::size_t) {
        const auto frame = read_relay_frame(line->frame);
        if (failed || !frame) return attend_again(line);
        if (!attends.exchange(true)) {
          options.log.info(
              fmt::format("reached through the relay at {} port {}", options.host, options.port));
        }
        if (frame->kind == RelayFrame::Kind::kRing) answer(*frame);
        listen(line);
      });
}

// The relay takes silence for the end of this client, and only one sign is under way at a time.
void RelayClient::Impl::give_sign(const LinePointer& line) {
  next_sign.expires_after(options.sign_every);
  next_sign.async_wait([this, line](const error_code& stopped) {
    if (stopped) return;
    const auto bytes = std::make_shared<RelayFrameBytes>(write_relay_frame({}));
    asio::async_write(line->socket, asio::buffer(*bytes),
                      [this, line, bytes](const error_code& failed, std::size_t) {
                        // The read of listen() ends with it.
                        failed ? line->close() : give_sign(line);
                      });
  });
}

void RelayClient::Impl::answer(const RelayFrame& ring) {
  if (alive.use_count() > kMostConnections) return;
  RelayFrame take = introduction(RelayFrame::Kind::kTake);
  take.call = ring.call;
  const auto line = std::make_shared<Line>(StreamSocket(io));
  dial(take, line, [this, line, id = ring.socket, held = alive](bool said) {
    line->deadline.cancel();
    if (!said) return;
    const auto own = std::make_shared<StreamSocket>(io);
    own->async_connect(
        Local::endpoint(path_of(options.listener, id)),
        [line, own, held](const error_code& failed) {
          if (failed) return;
          std::make_shared<Splice>(std::move(line->socket), std::move(*own), held)->begin();
        });
  });
}

Result<void> RelayClient::Impl::open(Door& door, SocketId id) {
  const std::string path = path_of(fmt::format("{}/to-{}", options.folder, door.client), id);
  auto acceptor = std::make_unique<Local::acceptor>(io);
  error_code failed;
  ::unlink(path.c_str());  // of a door that could not be opened as a whole
  acceptor->open(Local(), failed);
  if (!failed) acceptor->bind(Local::endpoint(path), failed);
  if (!failed) acceptor->listen(asio::socket_base::max_listen_connections, failed);
  if (failed) {
    return Error{ErrorKind::kUsage, fmt::format("cannot listen on {}: {}", path, failed.message())};
  }
  door.acceptors.push_back(std::move(acceptor));
  return {};
}

void RelayClient::Impl::accept(Door& door, SocketId id) {
  door.acceptors[static_cast<std::size_t>(id)]->async_accept(
      io, [this, &door, id](const error_code& failed, Local::socket socket) {
        if (!failed) {
          call(std::make_shared<StreamSocket>(std::move(socket)), door.client, id,
               steady_now() + kCallWithin);
          return accept(door, id);
        }
        // Without descriptors, say.
        const auto later = std::make_shared<asio::steady_timer>(io, kPause);
        later->async_wait([this, &door, id, later](const error_code&) { accept(door, id); });
      });
}

// Each attempt has a line of its own to the relay. Nothing of the caller is read before the other
// client answers, so an attempt that fails loses nothing. When the time is over nobody holds the
// caller any more, which closes it.
void RelayClient::Impl::call(const std::shared_ptr<StreamSocket>& caller, std::uint32_t client,
                             SocketId id, TimePoint until) {
  RelayFrame frame = introduction(RelayFrame::Kind::kCall);
  frame.other = client;
  frame.socket = id;
  const auto line = std::make_shared<Line>(StreamSocket(io));
  const auto again = [this, caller, client, id, until, line] {
    line->close();
    if (steady_now() >= until) return;
    const auto later = std::make_shared<asio::steady_timer>(io, kPause);
    later->async_wait([this, caller, client, id, until, later](const error_code&) {
      call(caller, client, id, until);
    });
  };
  dial(frame, line, [this, line, caller, again](bool said) {
    if (!said) return again();
    asio::async_read(
        line->socket, asio::buffer(line->frame),
        [this, line, caller, again](const error_code& failed, std::size_t) {
          const auto answer = read_relay_frame(line->frame);
          if (failed || !answer || answer->kind != RelayFrame::Kind::kOpen) {
            return again();
          }
          line->deadline.cancel();
          std::make_shared<Splice>(std::move(*caller), std::move(line->socket), alive)->begin();
        });
  });
}

RelayClient::RelayClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

// The last words may still be on their way.
RelayClient::~RelayClient() {
  constexpr auto kLastWordsWithin = std::chrono::seconds(1);
  constexpr auto kLook = std::chrono::milliseconds(5);
  const auto until = steady_now() + kLastWordsWithin;
  while (impl_->alive.use_count() > 1 && steady_now() < until) {
    std::this_thread::sleep_for(kLook);
  }
  impl_->io.stop();
  impl_->thread.join();
}

Result<std::unique_ptr<RelayClient>> RelayClient::open(const RelayClientOptions& options) {
  try {
    auto impl = std::make_unique<Impl>(options);
    error_code failed;
    impl->relay = relay_endpoint(options.host, options.port, failed);
    if (failed) {
      return Error{ErrorKind::kUsage, fmt::format("'{}' is no address of a relay", options.host)};
    }
    impl->attend();
    ASSIGN_OR_RETURN(impl->thread,
                     start_thread("the relay", [impl = impl.get()] { impl->io.run(); }));
    return std::unique_ptr<RelayClient>(new RelayClient(std::move(impl)));
  } catch (const std::exception& failure) {
    return Error{ErrorKind::kUsage, fmt::format("cannot use a relay: {}", failure.what())};
  }
}

bool RelayClient::attends(Duration within) const {
  constexpr auto kLook = std::chrono::milliseconds(5);
  const auto until = steady_now() + within;
  while (!impl_->attends && steady_now() < until) {
    std::this_thread::sleep_for(kLook);
  }
  return impl_->attends;
}

Result<std::string> RelayClient::door_to(std::uint32_t client) {
  const auto [found, fresh] = impl_->doors.try_emplace(client);
  Impl::Door& door = found->second;
  if (fresh) {
    door.client = client;
    for (const SocketId id : {SocketId::kControl, SocketId::kData}) {
      if (auto opened = impl_->open(door, id); !opened.ok()) {
        impl_->doors.erase(found);
        return opened.error();
      }
    }
    asio::post(impl_->io, [impl = impl_.get(), &door] {
      for (const SocketId id : {SocketId::kControl, SocketId::kData}) {
        impl->accept(door, id);
      }
    });
  }
  return fmt::format("ipc://{}/to-{}", impl_->options.folder, client);
}

std::string RelayedWire::address() const { return relay_address(client_); }

Result<ConnectionId> RelayedWire::dial(const std::string& address) {
  const std::string_view place = without_key(address);
  const auto client = relay_client(place);
  if (!client) return wire_->dial(address);
  ASSIGN_OR_RETURN(std::string door, relay_->door_to(*client));
  door += address.substr(place.size());
  return wire_->dial(door);
}

}  // namespace troupe::runtime
