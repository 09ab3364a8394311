#include "launch/invitation.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/transport/wire_format.h"

namespace troupe::launch {
namespace {

constexpr std::size_t kMostTopology = std::size_t{1} << 20;
constexpr std::size_t kMostPath = 4096;
constexpr std::uint64_t kMostMembers = 1 << 16;

}  // namespace

runtime::Buffer pack_invitation(const MemberInvitation& invitation) {
  runtime::WireWriter out;
  out.list(4);
  out.text(invitation.topology);
  out.number(invitation.members);
  out.text(invitation.data_folder);
  out.text(invitation.host);
  return out.take_header();
}

runtime::Result<MemberInvitation> unpack_invitation(const runtime::Buffer& contents) {
  runtime::WireReader in(contents.bytes());
  MemberInvitation invitation;
  in.list(4);
  invitation.topology = in.text(kMostTopology);
  invitation.members = static_cast<std::uint32_t>(in.number(kMostMembers));
  invitation.data_folder = in.text(kMostPath);
  invitation.host = in.text(kMostPath);
  if (in.ok() && invitation.members == 0) in.fail("a run without members");
  if (in.finished()) return invitation;
  return runtime::Error{runtime::ErrorKind::kLostPeers,
                        fmt::format("the invitation cannot be read ({})", in.problem())};
}

runtime::Result<std::string> MemberNames::choose(const std::string& wanted,
                                                 const std::vector<std::string>& awaited,
                                                 runtime::TimePoint now) {
  const auto is_free = [&](const std::string& name) {
    const auto promised = promised_.find(name);
    return (wanted.empty() ? !reserved_.contains(name) : name == wanted) &&
           (promised == promised_.end() || now - promised->second >= kPromise);
  };
  const auto found = std::find_if(awaited.begin(), awaited.end(), is_free);
  if (found != awaited.end()) {
    promised_[*found] = now;
    return *found;
  }
  if (!wanted.empty()) {
    return runtime::Error{
        runtime::ErrorKind::kUsage,
        fmt::format("{} is not awaited, or another process is about to be it", wanted)};
  }
  return runtime::Error{runtime::ErrorKind::kUsage,
                        "all members of the run are there, or about to come"};
}

}  // namespace troupe::launch
