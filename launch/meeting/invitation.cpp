#include "launch/meeting/invitation.h"

#include <fmt/format.h>

#include "config/topology.h"
#include "pipeline/steps/view.h"
#include "runtime/relay/relay_frames.h"
#include "runtime/transport/wire_fields.h"
#include "runtime/transport/wire_format.h"

namespace troupe::launch {
namespace {

constexpr std::size_t kMostPath = 4096;
constexpr std::uint64_t kMostIterations = std::uint64_t{1} << 32;
constexpr std::size_t kMostToken = 64;
// A turn is the number of its worker in one byte, behind one that says so.
constexpr std::size_t kTurnBytes = 2;
constexpr std::size_t kMostTurns = MemberInvitation::kMostTopologyBytes / kTurnBytes;

}  // namespace

template <class Archive>
void fields(Archive& archive, runtime::Like<MemberInvitation> auto& invitation) {
  archive.text("topology", invitation.topology, MemberInvitation::kMostTopologyBytes);
  archive.number("members", invitation.members, config::kMostMembers);
  archive.number("slots", invitation.slots, config::kMostMembers);
  archive.text("data_folder", invitation.data_folder, kMostPath);
  archive.text("host", invitation.host, kMostPath);
  archive.hash("data_fingerprint", invitation.data.fingerprint);
  archive.number("iterations_per_epoch", invitation.data.iterations_per_epoch, kMostIterations);
  archive.number("last_micro_batches", invitation.data.last_micro_batches,
                 pipeline::kMostMicroBatches);
  archive.number("relay_port", invitation.relay_port);
  archive.converted("relay_token", invitation.relay_token, kMostToken, runtime::token_text,
                    runtime::read_token);
  archive.list("order", invitation.order, kMostTurns);
}

static const char* fault_of(const MemberInvitation& invitation) {
  if (invitation.data.iterations_per_epoch == 0) return "an epoch without iterations";
  if (invitation.members == 0) return "a run without members";
  return invitation.slots < invitation.members ? "a run of more members than slots" : nullptr;
}

runtime::Result<void> check_topology_fits(const std::string& effective_topology) {
  if (effective_topology.size() <= MemberInvitation::kMostTopologyBytes) return {};
  return runtime::Error{
      runtime::ErrorKind::kTopology,
      fmt::format("the topology with all its values is a text of {} bytes, and members can be told "
                  "{} at most; describe the networks in fewer words, or train in one process",
                  effective_topology.size(), MemberInvitation::kMostTopologyBytes)};
}

runtime::Result<void> check_order_fits(const std::string& effective_topology,
                                       const std::vector<std::uint32_t>& order) {
  const std::size_t room = MemberInvitation::kMostTopologyBytes - effective_topology.size();
  if (kTurnBytes * order.size() <= room) return {};
  return runtime::Error{
      runtime::ErrorKind::kUsage,
      fmt::format("--order has {} turns, and members can be told {} at most beside this topology; "
                  "train in one process",
                  order.size(), room / kTurnBytes)};
}

runtime::Buffer pack_invitation(const MemberInvitation& invitation) {
  CHECK(invitation.topology.size() <= MemberInvitation::kMostTopologyBytes);
  runtime::WireWriter out;
  runtime::write_fields(out, invitation);
  return out.take_header();
}

runtime::Result<MemberInvitation> unpack_invitation(const runtime::Buffer& contents) {
  runtime::WireReader in(contents.bytes());
  MemberInvitation invitation;
  runtime::read_fields(in, invitation);
  if (in.finished()) return invitation;
  return runtime::Error{runtime::ErrorKind::kLostPeers,
                        fmt::format("the invitation cannot be read ({})", in.problem())};
}

}  // namespace troupe::launch
