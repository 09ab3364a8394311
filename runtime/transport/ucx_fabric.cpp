#include "runtime/transport/ucx_fabric.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include "runtime/base/bytes.h"
#include "runtime/transport/ucx_library.h"

namespace troupe::runtime {
namespace {

constexpr unsigned kMessageId = 1;
constexpr std::size_t kWord = sizeof(std::uint64_t);
// Of a message: the token, its number, and how many frames it has. 0 frames stand for two, of which
// the first one follows in the header and the second one is the data. Other frames are the data,
// behind their sizes, each from a multiple of eight bytes on.
constexpr std::size_t kNumberAt = 2 * kWord, kFramesAt = 3 * kWord, kHeaderBytes = 4 * kWord;
// Set in the number of what goes to the dialer: both ends may be in one process.
constexpr std::uint64_t kToDialer = std::uint64_t{1} << 63;
// Smaller messages are copied into one piece anyway.
constexpr std::size_t kCopyBytes = 1024;
// More than one payload can have.
constexpr std::uint64_t kMostData = std::uint64_t{17} << 30;
// How long an end that has sent everything waits for the other to go first: one that goes while it
// is sent something may take back what it has sent itself.
constexpr Duration kGrace = std::chrono::milliseconds(100);
// An endless flood leaves the wire its other work.
constexpr int kManyRounds = 1000;

std::size_t padded(std::size_t bytes) { return (bytes + kWord - 1) / kWord * kWord; }

Error no_fabric(std::string why) { return {ErrorKind::kUsage, std::move(why)}; }

// One direction of a connection, as its receiver knows it.
struct StreamKey {
  SharedToken token{};
  bool to_dialer = false;
  auto operator<=>(const StreamKey&) const = default;
};

struct Endpoint {
  ucp_ep_h handle = nullptr;
  // Whether the library notices a dead peer, and can give up what is under way to it.
  bool tells_failure = true;
  ucs_status_t failure = UCS_OK;
  std::size_t unsent = 0;  // messages that the library has not done with
};

// What the library uses until it says that it is done.
struct Sending {
  std::list<Sending>* home = nullptr;
  std::list<Sending>::iterator self;
  std::shared_ptr<Endpoint> to;
  const UcxLibrary* library = nullptr;
  std::array<std::byte, kHeaderBytes + UcxStream::kMostPrelude> header{};
  Buffer data;
};

struct Parting {
  std::shared_ptr<Endpoint> from;
  TimePoint until;
  bool has_sent = false;  // all messages, and then it is flushed
  void* flush = nullptr;  // null: it is done
};

struct Closing {
  std::shared_ptr<Endpoint> endpoint;
  void* request = nullptr;
};

// A message that has not been handed on.
struct Slot {
  bool is_whole = false;
  std::vector<Buffer> frames;
};

}  // namespace

struct UcxStream::Impl {
  UcxFabric::Impl& fabric;
  const StreamKey key;
  RecycledMemory& memory;
  std::shared_ptr<Endpoint> endpoint;
  std::optional<TimePoint> parts_by;
  std::uint64_t sent = 0;
  std::uint64_t next = 0;  // to be handed on
  std::map<std::uint64_t, Slot> slots;
  std::string fault;

  bool is_next_whole() const {
    return !slots.empty() && slots.begin()->first == next && slots.begin()->second.is_whole;
  }
  std::string failure() const;
};

namespace {

// A payload on its way in.
struct Receiving {
  std::list<Receiving>* home = nullptr;
  std::list<Receiving>::iterator self;
  UcxFabric::Impl* fabric = nullptr;
  StreamKey key;
  std::uint64_t number = 0;
  std::vector<Buffer> frames;  // of Slot; empty: `data` holds them all
  Buffer data;
  std::uint64_t count = 0;
};

}  // namespace

struct UcxFabric::Impl {
  explicit Impl(const Clock& time) : clock(time) {}
  ~Impl();

  void receive(std::span<const std::byte> header, void* data, std::size_t bytes,
               bool is_rendezvous);
  void take_data(Receiving& receiving, const std::byte* data);
  void await_data(Receiving receiving, void* descriptor);
  void settle(Receiving& receiving, ucs_status_t status);
  void close(std::shared_ptr<Endpoint> endpoint);
  void part(std::shared_ptr<Endpoint> endpoint, TimePoint until);
  void go_on_parting(Parting& one, TimePoint now);
  void reap();
  UcxStream::Impl* find(const StreamKey& key) {
    const auto found = streams.find(key);
    return found == streams.end() ? nullptr : found->second;
  }

  const Clock& clock;
  NetworkRange network;
  const UcxLibrary* library = nullptr;
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  int descriptor = -1;
  UcxOffer offer;
  bool tells_failure = true;  // as Endpoint has it, until one could not
  std::map<StreamKey, UcxStream::Impl*> streams;
  std::list<Sending> sending;
  std::list<Receiving> receiving;
  std::list<Parting> parting;
  std::list<Closing> closing;
};

namespace {

ucs_status_t on_message(void* fabric, const void* header, std::size_t header_bytes, void* data,
                        std::size_t bytes, const ucp_am_recv_param_t* param) {
  static_cast<UcxFabric::Impl*>(fabric)->receive(
      {static_cast<const std::byte*>(header), header_bytes}, data, bytes,
      (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0);
  return UCS_OK;
}

void on_sent(void* request, ucs_status_t, void* user) {
  auto* const done = static_cast<Sending*>(user);
  done->library->ucp_request_free(request);
  --done->to->unsent;
  done->home->erase(done->self);
}

void on_received(void* request, ucs_status_t status, std::size_t, void* user) {
  auto* const done = static_cast<Receiving*>(user);
  done->fabric->library->ucp_request_free(request);
  done->fabric->settle(*done, status);
  done->home->erase(done->self);
}

void on_failure(void* endpoint, ucp_ep_h, ucs_status_t status) {
  static_cast<Endpoint*>(endpoint)->failure = status;
}

// The frames that a message's data hold; nothing: it is damaged.
std::optional<std::vector<Buffer>> split(const Buffer& data, std::uint64_t count) {
  if (count > UcxStream::kMostFrames || data.size() < count * kWord) return std::nullopt;
  std::vector<Buffer> frames;
  std::size_t at = count * kWord;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t bytes = from_little_endian(data.bytes().subspan(i * kWord, kWord));
    if (bytes > data.size() - at || padded(bytes) > data.size() - at) return std::nullopt;
    frames.push_back(data.slice(at, bytes));
    at += padded(bytes);
  }
  if (at != data.size()) return std::nullopt;
  return frames;
}

// As split() reads it.
Buffer join(std::span<const Buffer> frames) {
  std::size_t bytes = frames.size() * kWord;
  for (const Buffer& frame : frames) bytes += padded(frame.size());
  Buffer data = Buffer::zeroed(bytes);
  std::byte* size_at = data.mutable_data();
  std::byte* at = size_at + frames.size() * kWord;
  for (const Buffer& frame : frames) {
    size_at = std::ranges::copy(to_little_endian(std::uint64_t{frame.size()}), size_at).out;
    std::ranges::copy(frame.bytes(), at);
    at += padded(frame.size());
  }
  return data;
}

}  // namespace

// The library completes what is under way, and each completion takes its entry from a list.
UcxFabric::Impl::~Impl() {
  if (worker != nullptr) {
    for (Parting& one : parting) close(std::move(one.from));
    const TimePoint until = clock.now() + kGrace;
    while (!closing.empty() && clock.now() < until) {
      library->ucp_worker_progress(worker);
      reap();
    }
    library->ucp_worker_destroy(worker);
  }
  if (context != nullptr) library->ucp_cleanup(context);
}

// A message of no stream is dropped: its connection has gone. Others know no token.
void UcxFabric::Impl::receive(std::span<const std::byte> header, void* data, std::size_t bytes,
                              bool is_rendezvous) {
  if (header.size() < kHeaderBytes) return;
  Receiving one;
  std::memcpy(one.key.token.data(), header.data(), sizeof(one.key.token));
  const std::uint64_t number = from_little_endian(header.subspan(kNumberAt, kWord));
  one.key.to_dialer = (number & kToDialer) != 0;
  one.number = number & ~kToDialer;
  one.count = from_little_endian(header.subspan(kFramesAt, kWord));
  UcxStream::Impl* const stream = find(one.key);
  if (stream == nullptr) return;
  if (one.number < stream->next || !stream->slots.try_emplace(one.number).second) {
    stream->fault = "it sent a message twice";
    return;
  }
  one.fabric = this;
  if (one.count == 0) one.frames.push_back(Buffer::copy_of(header.subspan(kHeaderBytes)));
  one.data = bytes > kMostData ? Buffer() : stream->memory.take(std::max<std::size_t>(bytes, 1));
  if (one.data.empty()) {
    stream->fault = fmt::format("it sent {} bytes, for which there is no memory", bytes);
    return;
  }
  one.data = one.data.slice(0, bytes);
  if (is_rendezvous) return await_data(std::move(one), data);
  std::memcpy(one.data.mutable_data(), data, bytes);
  settle(one, UCS_OK);
}

void UcxFabric::Impl::await_data(Receiving one, void* data) {
  Receiving& kept = receiving.emplace_back(std::move(one));
  kept.home = &receiving;
  kept.self = std::prev(receiving.end());
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.cb.recv_am = on_received;
  param.user_data = &kept;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  void* const request = library->ucp_am_recv_data_nbx(worker, data, kept.data.mutable_data(),
                                                      kept.data.size(), &param);
  if (UCS_PTR_IS_PTR(request)) return;
  settle(kept, UCS_PTR_RAW_STATUS(request));
  receiving.erase(kept.self);
}

// The stream may have gone meanwhile.
void UcxFabric::Impl::settle(Receiving& one, ucs_status_t status) {
  UcxStream::Impl* const stream = find(one.key);
  if (stream == nullptr) return;
  const auto slot = stream->slots.find(one.number);
  if (slot == stream->slots.end()) return;
  if (status != UCS_OK) {
    stream->fault = fmt::format("a payload broke off: {}", library->ucs_status_string(status));
    return;
  }
  if (one.count == 0) {
    one.frames.push_back(std::move(one.data));
  } else if (auto frames = split(one.data, one.count)) {
    one.frames = std::move(*frames);
  } else {
    stream->fault = "it sent a damaged message";
    return;
  }
  slot->second.frames = std::move(one.frames);
  slot->second.is_whole = true;
}

void UcxFabric::Impl::close(std::shared_ptr<Endpoint> endpoint) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = endpoint->tells_failure ? UCP_EP_CLOSE_FLAG_FORCE : 0;
  void* const request = library->ucp_ep_close_nbx(endpoint->handle, &param);
  if (UCS_PTR_IS_PTR(request)) closing.push_back({std::move(endpoint), request});
}

void UcxFabric::Impl::part(std::shared_ptr<Endpoint> endpoint, TimePoint until) {
  parting.push_back({std::move(endpoint), until});
  reap();
}

// A flush says nothing of a payload that the other end has still to fetch.
void UcxFabric::Impl::go_on_parting(Parting& one, TimePoint now) {
  if (!one.has_sent) {
    if (one.from->unsent > 0) return;
    one.has_sent = true;
    ucp_request_param_t param{};
    void* const flush = library->ucp_ep_flush_nbx(one.from->handle, &param);
    if (UCS_PTR_IS_PTR(flush)) one.flush = flush;
  } else if (one.flush == nullptr ||
             library->ucp_request_check_status(one.flush) == UCS_INPROGRESS) {
    return;
  } else {
    library->ucp_request_free(std::exchange(one.flush, nullptr));
  }
  if (one.flush == nullptr) one.until = std::min(one.until, now + kGrace);
}

void UcxFabric::Impl::reap() {
  const TimePoint now = clock.now();
  std::erase_if(closing, [&](const Closing& one) {
    if (library->ucp_request_check_status(one.request) == UCS_INPROGRESS) return false;
    library->ucp_request_free(one.request);
    return true;
  });
  std::erase_if(parting, [&](Parting& one) {
    go_on_parting(one, now);
    if (one.from->failure == UCS_OK && now < one.until) return false;
    if (one.flush != nullptr) library->ucp_request_free(one.flush);
    close(std::move(one.from));
    return true;
  });
}

UcxFabric::UcxFabric(const Clock& clock) : impl_(std::make_unique<Impl>(clock)) {}
UcxFabric::~UcxFabric() = default;

namespace {

ucs_status_t make_worker(UcxFabric::Impl& fabric) {
  const UcxLibrary& library = *fabric.library;
  ucp_config_t* config = nullptr;
  if (const auto status = library.ucp_config_read(nullptr, nullptr, &config); status != UCS_OK) {
    return status;
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  auto status =
      library.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &fabric.context);
  library.ucp_config_release(config);
  if (status != UCS_OK) return status;
  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  status = library.ucp_worker_create(fabric.context, &worker, &fabric.worker);
  if (status != UCS_OK) return status;
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessageId;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = on_message;
  handler.arg = &fabric;
  status = library.ucp_worker_set_am_recv_handler(fabric.worker, &handler);
  return status == UCS_OK ? library.ucp_worker_get_efd(fabric.worker, &fabric.descriptor) : status;
}

}  // namespace

Result<void> UcxFabric::open(const NetworkRange& network) {
  CHECK(impl_->library == nullptr, "UCX is opened once");
  impl_->network = network;
  ASSIGN_OR_RETURN(impl_->library, ucx_library());
  const UcxLibrary& library = *impl_->library;
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  auto status = make_worker(*impl_);
  if (status == UCS_OK) status = library.ucp_worker_get_address(impl_->worker, &address, &bytes);
  if (status != UCS_OK) {
    return no_fabric(
        fmt::format("UCX does not start: {}; what it may use is said by UCX_TLS and "
                    "UCX_NET_DEVICES, and UCX_LOG_LEVEL=info tells more",
                    library.ucs_status_string(status)));
  }
  CHECK(bytes <= UcxOffer::kMostBytes, "UCX has an address of any length");
  impl_->offer.address.assign(reinterpret_cast<const char*>(address), bytes);
  library.ucp_worker_release_address(impl_->worker, address);
  unsigned major = 0, minor = 0, release = 0;
  library.ucp_get_version(&major, &minor, &release);
  impl_->offer.version = fmt::format("{}.{}", major, minor);
  impl_->offer.check = hash_of(impl_->offer.address);
  return {};
}

bool UcxFabric::is_open() const { return !impl_->offer.address.empty(); }
const UcxOffer& UcxFabric::offer() const { return impl_->offer; }
bool UcxFabric::may_reach(const std::string& host, bool loopback) const {
  return loopback || impl_->network.has(host);
}

std::unique_ptr<UcxStream> UcxFabric::stream(const SharedToken& token, bool is_dialer,
                                             RecycledMemory& memory) {
  CHECK(is_open(), "a stream needs UCX");
  auto impl = std::make_unique<UcxStream::Impl>(
      UcxStream::Impl{*impl_, {token, is_dialer}, memory, {}, {}, 0, 0, {}, {}});
  CHECK(impl_->streams.emplace(impl->key, impl.get()).second, "a token is used twice");
  return std::unique_ptr<UcxStream>(new UcxStream(std::move(impl)));
}

void UcxFabric::progress() {
  if (!is_open()) return;
  for (int i = 0; i < kManyRounds && impl_->library->ucp_worker_progress(impl_->worker) != 0; ++i) {
  }
  impl_->reap();
}

UcxFabric::Wait UcxFabric::before_wait() {
  if (!is_open()) return {};
  progress();
  const bool has_news = std::ranges::any_of(impl_->streams, [](const auto& stream) {
    return stream.second->endpoint != nullptr &&
           (stream.second->is_next_whole() || !stream.second->failure().empty());
  });
  return {impl_->descriptor, has_news || impl_->library->ucp_worker_arm(impl_->worker) != UCS_OK};
}

TimePoint UcxFabric::next_deadline() const {
  TimePoint next = TimePoint::max();
  for (const Parting& one : impl_->parting) next = std::min(next, one.until);
  return next;
}

void UcxFabric::drain() {
  while (!impl_->parting.empty()) {
    const Wait wait = before_wait();
    if (impl_->parting.empty()) return;
    pollfd item{wait.descriptor, POLLIN, 0};
    ::poll(&item, 1, wait.at_once ? 0 : 1);
  }
}

std::string UcxStream::Impl::failure() const {
  if (!fault.empty()) return fault;
  if (endpoint == nullptr || endpoint->failure == UCS_OK) return "";
  return fabric.library->ucs_status_string(endpoint->failure);
}

UcxStream::UcxStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

UcxStream::~UcxStream() {
  impl_->fabric.streams.erase(impl_->key);
  if (impl_->endpoint == nullptr) return;
  if (impl_->parts_by && impl_->endpoint->failure == UCS_OK) {
    impl_->fabric.part(std::move(impl_->endpoint), *impl_->parts_by);
  } else {
    impl_->fabric.close(std::move(impl_->endpoint));
  }
}

Result<void> UcxStream::connect(const UcxOffer& peer) {
  const auto refused = [](std::string why) { return Error{ErrorKind::kLostPeers, std::move(why)}; };
  UcxFabric::Impl& fabric = impl_->fabric;
  if (peer.version != fabric.offer.version) {
    return refused(
        fmt::format("one end has UCX {} and the other one {}: install the same release "
                    "on both",
                    fabric.offer.version, peer.version));
  }
  if (peer.address.empty() || hash_of(peer.address) != peer.check) {
    return refused("its UCX address is damaged");
  }
  auto endpoint = std::make_shared<Endpoint>();
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(peer.address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {on_failure, endpoint.get()};
  endpoint->tells_failure = fabric.tells_failure;
  auto status = UCS_ERR_UNREACHABLE;
  if (fabric.tells_failure) {
    status = fabric.library->ucp_ep_create(fabric.worker, &params, &endpoint->handle);
  }
  if (status == UCS_ERR_UNREACHABLE) {
    // Shared memory, where UCX is told to use nothing else. The sockets notice a dead peer anyway.
    endpoint->tells_failure = false;
    params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
    params.field_mask &= ~std::uint64_t{UCP_EP_PARAM_FIELD_ERR_HANDLER};
    status = fabric.library->ucp_ep_create(fabric.worker, &params, &endpoint->handle);
    // The library complains each time.
    if (status == UCS_OK) fabric.tells_failure = false;
  }
  if (status != UCS_OK) {
    return refused(
        fmt::format("UCX finds no way between both ends: {}; compare their UCX_TLS and "
                    "UCX_NET_DEVICES",
                    fabric.library->ucs_status_string(status)));
  }
  impl_->endpoint = std::move(endpoint);
  return {};
}

bool UcxStream::is_connected() const { return impl_->endpoint != nullptr; }

void UcxStream::part(TimePoint until) { impl_->parts_by = until; }

void UcxStream::send(std::span<const Buffer> frames) {
  CHECK(is_connected() && !frames.empty() && frames.size() <= kMostFrames,
        "no message of a stream");
  if (impl_->endpoint->failure != UCS_OK) return;
  UcxFabric::Impl& fabric = impl_->fabric;
  Sending& one = fabric.sending.emplace_back();
  one.home = &fabric.sending;
  one.self = std::prev(fabric.sending.end());
  one.to = impl_->endpoint;
  one.library = fabric.library;
  const bool in_place =
      frames.size() == 2 && frames[0].size() <= kMostPrelude && frames[1].size() >= kCopyBytes;
  std::memcpy(one.header.data(), impl_->key.token.data(), sizeof(impl_->key.token));
  const std::uint64_t number = impl_->sent++ | (impl_->key.to_dialer ? 0 : kToDialer);
  std::ranges::copy(to_little_endian(number), one.header.data() + kNumberAt);
  std::ranges::copy(to_little_endian(std::uint64_t{in_place ? 0 : frames.size()}),
                    one.header.data() + kFramesAt);
  std::size_t header_bytes = kHeaderBytes;
  if (in_place) {
    std::ranges::copy(frames[0].bytes(), one.header.data() + kHeaderBytes);
    header_bytes += frames[0].size();
  }
  one.data = in_place ? frames[1] : join(frames);
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.cb.send = on_sent;
  param.user_data = &one;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  void* const request =
      fabric.library->ucp_am_send_nbx(impl_->endpoint->handle, kMessageId, one.header.data(),
                                      header_bytes, one.data.data(), one.data.size(), &param);
  if (UCS_PTR_IS_PTR(request)) {
    ++one.to->unsent;
    return;
  }
  if (UCS_PTR_IS_ERR(request)) impl_->endpoint->failure = UCS_PTR_RAW_STATUS(request);
  fabric.sending.erase(one.self);
}

bool UcxStream::receive(std::vector<Buffer>& frames) {
  if (!impl_->is_next_whole()) return false;
  frames = std::move(impl_->slots.begin()->second.frames);
  impl_->slots.erase(impl_->slots.begin());
  ++impl_->next;
  return true;
}

std::string UcxStream::failure() const { return impl_->failure(); }

}  // namespace troupe::runtime
