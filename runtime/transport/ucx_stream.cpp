#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "runtime/base/bytes.h"
#include "runtime/transport/ucx_endpoints.h"

namespace troupe::runtime {
namespace {

void on_sent(void* request, ucs_status_t, void* user) {
  auto* const done = static_cast<UcxSending*>(user);
  done->library->ucp_request_free(request);
  --done->to->unsent;
  done->home->erase(done->self);
}

void on_failure(void* endpoint, ucp_ep_h, ucs_status_t status) {
  static_cast<UcxEndpoint*>(endpoint)->failure = status;
}

// As split_ucx() reads it.
Buffer join_ucx(std::span<const Buffer> frames) {
  std::size_t bytes = frames.size() * kUcxWord;
  for (const Buffer& frame : frames) bytes += ucx_padded(frame.size());
  Buffer data = Buffer::zeroed(bytes);
  std::byte* size_at = data.mutable_data();
  std::byte* at = size_at + frames.size() * kUcxWord;
  for (const Buffer& frame : frames) {
    size_at = std::ranges::copy(to_little_endian(std::uint64_t{frame.size()}), size_at).out;
    std::ranges::copy(frame.bytes(), at);
    at += ucx_padded(frame.size());
  }
  return data;
}

}  // namespace

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
  auto endpoint = std::make_shared<UcxEndpoint>();
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(peer.address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {on_failure, endpoint.get()};
  auto status = fabric.library->ucp_ep_create(fabric.worker, &params, &endpoint->handle);
  if (status == UCS_ERR_UNREACHABLE) {
    // Shared memory, where UCX is told to use nothing else. The sockets notice a dead peer anyway.
    endpoint->tells_failure = false;
    params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
    params.field_mask &= ~std::uint64_t{UCP_EP_PARAM_FIELD_ERR_HANDLER};
    status = fabric.library->ucp_ep_create(fabric.worker, &params, &endpoint->handle);
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

void UcxStream::end_news() { impl_->is_over = true; }

void UcxStream::part(TimePoint until) { impl_->parts_by = until; }

void UcxStream::send(std::span<const Buffer> frames) {
  CHECK(is_connected() && !frames.empty() && frames.size() <= kMostFrames,
        "no message of a stream");
  if (impl_->endpoint->failure != UCS_OK) return;
  UcxFabric::Impl& fabric = impl_->fabric;
  UcxSending& one = fabric.sending.emplace_back();
  one.home = &fabric.sending;
  one.self = std::prev(fabric.sending.end());
  one.to = impl_->endpoint;
  one.library = fabric.library;
  const bool in_place =
      frames.size() == 2 && frames[0].size() <= kMostPrelude && frames[1].size() >= kUcxCopyBytes;
  std::memcpy(one.header.data(), impl_->key.token.data(), sizeof(impl_->key.token));
  const std::uint64_t number = impl_->sent++ | (impl_->key.to_dialer ? 0 : kUcxToDialer);
  std::ranges::copy(to_little_endian(number), one.header.data() + kUcxNumberAt);
  std::ranges::copy(to_little_endian(std::uint64_t{in_place ? 0 : frames.size()}),
                    one.header.data() + kUcxFramesAt);
  std::size_t header_bytes = kUcxHeaderBytes;
  if (in_place) {
    std::ranges::copy(frames[0].bytes(), one.header.data() + kUcxHeaderBytes);
    header_bytes += frames[0].size();
  }
  one.data = in_place ? frames[1] : join_ucx(frames);
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.cb.send = on_sent;
  param.user_data = &one;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  void* const request =
      fabric.library->ucp_am_send_nbx(impl_->endpoint->handle, kUcxMessageId, one.header.data(),
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
