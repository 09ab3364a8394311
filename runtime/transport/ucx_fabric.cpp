#include "runtime/transport/ucx_fabric.h"

#include <fmt/format.h>
#include <poll.h>

#include <cstring>
#include <utility>

#include "runtime/base/bytes.h"
#include "runtime/transport/ucx_endpoints.h"

namespace troupe::runtime {
namespace {

Error no_fabric(std::string why) { return {ErrorKind::kUsage, std::move(why)}; }

ucs_status_t on_message(void* fabric, const void* header, std::size_t header_bytes, void* data,
                        std::size_t bytes, const ucp_am_recv_param_t* param) {
  static_cast<UcxFabric::Impl*>(fabric)->receive(
      {static_cast<const std::byte*>(header), header_bytes}, data, bytes,
      (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0);
  return UCS_OK;
}

void on_received(void* request, ucs_status_t status, std::size_t, void* user) {
  auto* const done = static_cast<UcxReceiving*>(user);
  done->fabric->library->ucp_request_free(request);
  done->fabric->settle(*done, status);
  done->home->erase(done->self);
}

// The frames that a message's data hold; nothing: it is damaged.
std::optional<std::vector<Buffer>> split_ucx(const Buffer& data, std::uint64_t count) {
  if (count > UcxStream::kMostFrames || data.size() < count * kUcxWord) return std::nullopt;
  std::vector<Buffer> frames;
  std::size_t at = count * kUcxWord;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t bytes = from_little_endian(data.bytes().subspan(i * kUcxWord, kUcxWord));
    if (bytes > data.size() - at || ucx_padded(bytes) > data.size() - at) return std::nullopt;
    frames.push_back(data.slice(at, bytes));
    at += ucx_padded(bytes);
  }
  if (at != data.size()) return std::nullopt;
  return frames;
}

}  // namespace

// The library completes what is under way, and each completion takes its entry from a list.
UcxFabric::Impl::~Impl() {
  if (worker != nullptr) {
    for (UcxParting& one : parting) close(std::move(one.from));
    const TimePoint until = clock.now() + kUcxGrace;
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
  if (header.size() < kUcxHeaderBytes) return;
  UcxReceiving one;
  std::memcpy(one.key.token.data(), header.data(), sizeof(one.key.token));
  const std::uint64_t number = from_little_endian(header.subspan(kUcxNumberAt, kUcxWord));
  one.key.to_dialer = (number & kUcxToDialer) != 0;
  one.number = number & ~kUcxToDialer;
  one.count = from_little_endian(header.subspan(kUcxFramesAt, kUcxWord));
  UcxStream::Impl* const stream = find(one.key);
  if (stream == nullptr || !stream->fault.empty()) return;
  if (one.number >= stream->next + kUcxMostAhead) {
    stream->fault = "it sent a message far ahead of those before it";
    return;
  }
  if (one.number < stream->next || !stream->slots.try_emplace(one.number).second) {
    stream->fault = "it sent a message twice";
    return;
  }
  one.fabric = this;
  if (one.count == 0) one.frames.push_back(Buffer::copy_of(header.subspan(kUcxHeaderBytes)));
  if (bytes < kUcxPagesFrom) {
    one.data = Buffer::zeroed(std::max<std::size_t>(bytes, 1));
  } else if (bytes <= kUcxMostData) {
    one.data = stream->memory.take(bytes);
  }
  if (one.data.empty()) {
    stream->fault = fmt::format("it sent {} bytes, for which there is no memory", bytes);
    return;
  }
  one.data = one.data.slice(0, bytes);
  if (is_rendezvous) return await_data(std::move(one), data);
  std::memcpy(one.data.mutable_data(), data, bytes);
  settle(one, UCS_OK);
}

void UcxFabric::Impl::await_data(UcxReceiving one, void* data) {
  UcxReceiving& kept = receiving.emplace_back(std::move(one));
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
void UcxFabric::Impl::settle(UcxReceiving& one, ucs_status_t status) {
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
  } else if (auto frames = split_ucx(one.data, one.count)) {
    one.frames = std::move(*frames);
  } else {
    stream->fault = "it sent a damaged message";
    return;
  }
  slot->second.frames = std::move(one.frames);
  slot->second.is_whole = true;
}

void UcxFabric::Impl::close(std::shared_ptr<UcxEndpoint> endpoint) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = endpoint->tells_failure ? UCP_EP_CLOSE_FLAG_FORCE : 0;
  void* const request = library->ucp_ep_close_nbx(endpoint->handle, &param);
  if (UCS_PTR_IS_PTR(request)) closing.push_back({std::move(endpoint), request});
}

void UcxFabric::Impl::part(std::shared_ptr<UcxEndpoint> endpoint, TimePoint until) {
  parting.push_back({std::move(endpoint), until});
  reap();
}

// A flush says nothing of a payload that the other end has still to fetch.
void UcxFabric::Impl::go_on_parting(UcxParting& one, TimePoint now) {
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
  if (one.flush == nullptr) one.until = std::min(one.until, now + kUcxGrace);
}

void UcxFabric::Impl::reap() {
  const TimePoint now = clock.now();
  std::erase_if(closing, [&](const UcxClosing& one) {
    if (library->ucp_request_check_status(one.request) == UCS_INPROGRESS) return false;
    library->ucp_request_free(one.request);
    return true;
  });
  std::erase_if(parting, [&](UcxParting& one) {
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
  auto status = UCS_OK;
  // Nothing is to leave this machine, and nobody beyond it is to reach UCX.
  if (fabric.network.is_empty()) status = library.ucp_config_modify(config, "NET_DEVICES", "lo");
  if (status != UCS_OK) {
    library.ucp_config_release(config);
    return status;
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  status = library.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &fabric.context);
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
  handler.id = kUcxMessageId;
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
  impl_->offer.address.assign(reinterpret_cast<const char*>(address), bytes);
  library.ucp_worker_release_address(impl_->worker, address);
  if (bytes > UcxOffer::kMostBytes) {
    return no_fabric(
        fmt::format("UCX has an address of {} bytes, and {} can be told; name fewer "
                    "devices by UCX_NET_DEVICES",
                    bytes, UcxOffer::kMostBytes));
  }
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

bool UcxFabric::progress() {
  if (!is_open()) return false;
  int rounds = 0;
  while (rounds < kUcxManyRounds && impl_->library->ucp_worker_progress(impl_->worker) != 0) {
    ++rounds;
  }
  impl_->reap();
  return rounds > 0;
}

UcxFabric::Wait UcxFabric::before_wait() {
  if (!is_open()) return {};
  const bool has_moved = progress();
  const bool has_news = std::ranges::any_of(impl_->streams, [](const auto& stream) {
    return stream.second->endpoint != nullptr && !stream.second->is_over &&
           (stream.second->is_next_whole() || !stream.second->failure().empty());
  });
  if (has_news) return {impl_->descriptor, Duration{0}};
  if (impl_->library->ucp_worker_arm(impl_->worker) == UCS_OK) {
    return {impl_->descriptor, Duration::max()};
  }
  // The library may never be done with what goes to a dead peer over shared memory.
  return {impl_->descriptor, has_moved ? Duration{0} : kUcxPause};
}

TimePoint UcxFabric::next_deadline() const {
  TimePoint next = TimePoint::max();
  for (const UcxParting& one : impl_->parting) next = std::min(next, one.until);
  return next;
}

void UcxFabric::drain() {
  while (!impl_->parting.empty()) {
    const Wait wait = before_wait();
    if (impl_->parting.empty()) return;
    pollfd item{wait.descriptor, POLLIN, 0};
    ::poll(&item, 1, wait.at_most == Duration{0} ? 0 : 1);
  }
}

}  // namespace troupe::runtime
