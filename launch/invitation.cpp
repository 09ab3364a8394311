#include "launch/invitation.h"

#include <fmt/format.h>

#include "config/topology.h"
#include "runtime/transport/relay_token.h"
#include "runtime/transport/wire_format.h"

namespace troupe::launch {
namespace {

constexpr std::size_t kMostPath = 4096;
constexpr std::uint64_t kMostIterations = std::uint64_t{1} << 32;
constexpr std::size_t kMostToken = 64;

}  // namespace

runtime::Result<void> check_topology_fits(const std::string& effective_topology) {
  if (effective_topology.size() <= MemberInvitation::kMostTopologyBytes) return {};
  return runtime::Error{
      runtime::ErrorKind::kTopology,
      fmt::format("the topology with all its values is a text of {} bytes, and members can be told "
                  "{} at most; describe the networks in fewer words, or train in one process",
                  effective_topology.size(), MemberInvitation::kMostTopologyBytes)};
}

runtime::Buffer pack_invitation(const MemberInvitation& invitation) {
  CHECK(invitation.topology.size() <= MemberInvitation::kMostTopologyBytes);
  runtime::WireWriter out;
  out.list(9);
  out.text(invitation.topology);
  out.number(invitation.members);
  out.number(invitation.places);
  out.text(invitation.data_folder);
  out.text(invitation.host);
  out.hash(invitation.data.fingerprint);
  out.number(invitation.data.iterations_per_epoch);
  out.number(invitation.relay_port);
  out.text(runtime::token_text(invitation.relay_token));
  return out.take_header();
}

runtime::Result<MemberInvitation> unpack_invitation(const runtime::Buffer& contents) {
  runtime::WireReader in(contents.bytes());
  MemberInvitation invitation;
  in.list(9);
  invitation.topology = in.text(MemberInvitation::kMostTopologyBytes);
  invitation.members = static_cast<std::uint32_t>(in.number(config::kMostMembers));
  invitation.places = static_cast<std::uint32_t>(in.number(config::kMostMembers));
  invitation.data_folder = in.text(kMostPath);
  invitation.host = in.text(kMostPath);
  invitation.data.fingerprint = in.hash();
  invitation.data.iterations_per_epoch = in.number(kMostIterations);
  if (in.ok() && invitation.data.iterations_per_epoch == 0) in.fail("an epoch without iterations");
  invitation.relay_port = static_cast<std::uint16_t>(in.number(UINT16_MAX));
  const auto token = runtime::read_token(in.text(kMostToken));
  if (in.ok() && !token) in.fail("a token of another length");
  if (token) invitation.relay_token = *token;
  if (in.ok() && invitation.members == 0) in.fail("a run without members");
  if (invitation.places < invitation.members) in.fail("a run of more members than places");
  if (in.finished()) return invitation;
  return runtime::Error{runtime::ErrorKind::kLostPeers,
                        fmt::format("the invitation cannot be read ({})", in.problem())};
}

}  // namespace troupe::launch
