#include "runtime/transport/zmq_admission.h"

#include <fmt/format.h>

#include <zmq.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe::runtime {
namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kRequestFrames = 7;

std::string_view text_of(const Buffer& frame) {
  return {reinterpret_cast<const char*>(frame.data()), frame.size()};
}

Buffer frame_of(std::string_view text) { return Buffer::copy_of(std::as_bytes(std::span(text))); }

// The key that a request is about; "" where it is not one of CURVE.
std::string key_of(std::span<const Buffer> request) {
  if (request.size() != kRequestFrames || text_of(request[0]) != "1.0" ||
      text_of(request[5]) != "CURVE" || request[6].size() != kKeyBytes) {
    return "";
  }
  std::array<char, kKeyBytes / 4 * 5 + 1> text{};
  ::zmq_z85_encode(text.data(), reinterpret_cast<const std::uint8_t*>(request[6].data()),
                   kKeyBytes);
  return text.data();
}

}  // namespace

AdmissionAnswer answer_admission(std::span<const Buffer> request,
                                 std::span<const AllowedKey> allowed) {
  AdmissionAnswer answer;
  answer.key = key_of(request);
  const auto same = [&](const AllowedKey& other) { return other.key == answer.key; };
  answer.admitted = !answer.key.empty() && std::any_of(allowed.begin(), allowed.end(), same);
  const Buffer id = request.size() > 1 ? request[1] : Buffer();
  // version, request id, status, reason, user id, metadata. The user id is what messages of the
  // connection show as their sender's key.
  answer.frames = {frame_of("1.0"),
                   id,
                   frame_of(answer.admitted ? "200" : "400"),
                   frame_of(answer.admitted ? "" : "not on the allow-list"),
                   frame_of(answer.admitted ? answer.key : ""),
                   Buffer()};
  return answer;
}

ZmqAdmission::ZmqAdmission(ZmqContext& context, AllowList allowed, Log log)
    : socket_(context,
              {.role = ZmqSocketOptions::Role::kReply, .route = {}, .keys = {}, .server_key = {}}),
      allowed_(std::move(allowed)),
      log_(std::move(log)) {}

Result<std::unique_ptr<ZmqAdmission>> ZmqAdmission::open(ZmqContext& context, AllowList allowed,
                                                         Log log) {
  std::unique_ptr<ZmqAdmission> admission(
      new ZmqAdmission(context, std::move(allowed), std::move(log)));
  auto bound = admission->socket_.bind("inproc://zeromq.zap.01");
  if (!bound.ok()) return Error{ErrorKind::kInternal, bound.error().message};
  return admission;
}

void ZmqAdmission::serve() {
  std::vector<Buffer> request;
  while (socket_.readable() && socket_.receive(request)) {
    const AdmissionAnswer answer = answer_admission(request, allowed_());
    if (!answer.admitted) {
      log_.warning(fmt::format("refused a peer whose key is not on the allow-list: {}",
                               answer.key.empty() ? "(none)" : answer.key));
    }
    socket_.send({}, answer.frames);
  }
}

}  // namespace troupe::runtime
