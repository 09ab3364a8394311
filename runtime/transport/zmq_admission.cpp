#include "runtime/transport/zmq_admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace troupe::runtime {
namespace {

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
  return key_of_bytes(std::span<const std::uint8_t, kKeyBytes>(
      reinterpret_cast<const std::uint8_t*>(request[6].data()), kKeyBytes));
}

const AllowedKey* find(std::span<const AllowedKey> listed, const std::string& key) {
  const auto same = [&](const AllowedKey& other) { return other.key == key; };
  const auto found = std::find_if(listed.begin(), listed.end(), same);
  return found == listed.end() ? nullptr : &*found;
}

}  // namespace

// A key that leaves the list before its time was taken off it, and is forgotten. One that leaves it
// later has expired, and may still come again. One that is listed for good needs no memory.
void AllowState::compare_with(std::span<const AllowedKey> listed, std::chrono::sys_seconds now) {
  for (auto known = let_in_.begin(); known != let_in_.end();) {
    const auto here = known++;
    const AllowedKey* entry = find(listed, here->first);
    if (entry != nullptr && entry->until) {
      here->second = *entry->until;
    } else if (entry != nullptr || now < here->second) {
      let_in_.erase(here);
    }
  }
}

Admission AllowState::admits(const std::string& key, std::span<const AllowedKey> listed,
                             std::chrono::sys_seconds now) {
  compare_with(listed, now);
  const AllowedKey* entry = find(listed, key);
  if (entry == nullptr || (entry->until && *entry->until <= now)) {
    return let_in_.contains(key) ? Admission::kExpired : Admission::kRefused;
  }
  if (entry->until) let_in_[key] = *entry->until;
  return Admission::kAdmitted;
}

AdmissionAnswer answer_admission(std::span<const Buffer> request,
                                 const std::function<Admission(const std::string& key)>& admits) {
  AdmissionAnswer answer;
  answer.key = key_of(request);
  if (!answer.key.empty()) answer.admission = admits(answer.key);
  const bool admitted = answer.admission != Admission::kRefused;
  const bool expired = answer.admission == Admission::kExpired;
  const Buffer id = request.size() > 1 ? request[1] : Buffer();
  // version, request id, status, reason, user id, metadata. Messages of the connection show the
  // user id, which ZmqSocket::origin() reads.
  answer.frames = {frame_of("1.0"),
                   id,
                   frame_of(admitted ? "200" : "400"),
                   frame_of(admitted ? "" : "not on the allow-list"),
                   frame_of(admitted ? ZmqOrigin::user_id(answer.key, expired) : ""),
                   Buffer()};
  return answer;
}

ZmqAdmission::ZmqAdmission(std::unique_ptr<ZmqSocket> socket, AllowList allowed,
                           WallClock wall_time, Log log)
    : socket_(std::move(socket)),
      allowed_(std::move(allowed)),
      wall_time_(std::move(wall_time)),
      log_(std::move(log)) {}

Result<std::unique_ptr<ZmqAdmission>> ZmqAdmission::open(ZmqContext& context, AllowList allowed,
                                                         WallClock wall_time, Log log) {
  ZmqSocketOptions options;
  options.role = ZmqSocketOptions::Role::kReply;
  ASSIGN_OR_RETURN(auto socket, ZmqSocket::open(context, options));
  auto bound = socket->bind("inproc://zeromq.zap.01");
  if (!bound.ok()) return Error{ErrorKind::kInternal, bound.error().message};
  return std::unique_ptr<ZmqAdmission>(new ZmqAdmission(std::move(socket), std::move(allowed),
                                                        std::move(wall_time), std::move(log)));
}

void ZmqAdmission::serve() {
  std::vector<Buffer> request;
  while (socket_->readable() && socket_->receive(request)) {
    const AdmissionAnswer answer = answer_admission(request, [this](const std::string& key) {
      const std::vector<AllowedKey> listed = allowed_();
      return state_.admits(key, listed, wall_time_());
    });
    if (answer.admission == Admission::kRefused) {
      log_.warning(fmt::format("refused a peer whose key is not on the allow-list: {}",
                               answer.key.empty() ? "(none)" : answer.key));
    }
    socket_->send({}, answer.frames);
  }
}

}  // namespace troupe::runtime
