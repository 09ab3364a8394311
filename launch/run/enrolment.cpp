#include "launch/run/enrolment.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "config/plan.h"
#include "launch/machine/this_host.h"
#include "launch/run/training_setup.h"
#include "runtime/base/host_name.h"
#include "runtime/base/secret.h"
#include "runtime/transport/resolve.h"

namespace troupe::launch {

using runtime::Result;

namespace {

// The relay takes any port where the head does. Else it has the port after the head's two.
constexpr std::uint16_t kRelayBehindHead = 2;

Result<std::unique_ptr<runtime::Relay>> open_relay(const runtime::Address& head,
                                                   const runtime::Log& log) {
  ASSIGN_OR_RETURN(const runtime::ResolvedAddress place, runtime::resolve(head));
  if (head.port > UINT16_MAX - kRelayBehindHead) {
    return runtime::Error{runtime::ErrorKind::kUsage,
                          fmt::format("there is no port behind {} for it", head.port)};
  }
  runtime::RelayOptions options;
  options.host = place.host;
  if (head.port != 0) options.port = static_cast<std::uint16_t>(head.port + kRelayBehindHead);
  options.log = log;
  return runtime::Relay::open(options);
}

}  // namespace

MemberInvitation invitation_to(const TrainingSetup& setup, const std::string& data_folder) {
  MemberInvitation invitation;
  invitation.topology = setup.topology_text;
  invitation.members = setup.size.members;
  invitation.slots = setup.size.slots;
  invitation.data_folder = std::filesystem::absolute(data_folder).string();
  invitation.host = runtime::host_name();
  invitation.data = setup.identity;
  if (setup.turns.order) invitation.order = *setup.turns.order;
  return invitation;
}

HeadRelay::HeadRelay(const std::string& listen,
                     const std::map<std::string, runtime::RelayToken>& tokens,
                     const runtime::Log& log) {
  const auto address = runtime::parse_address(listen);
  if (!address.ok() || address->kind != runtime::Address::Kind::kTcp) return;
  auto opened = open_relay(*address, log);
  if (!opened.ok()) {
    log.warning(
        fmt::format("there is no relay, so that of members with --listen none only one can "
                    "join: {}",
                    opened.error().message));
    return;
  }
  relay_ = std::move(*opened);
  // The last process that was asked to be the member counts.
  std::map<std::uint32_t, std::pair<std::uint32_t, runtime::RelayToken>> newest;
  for (const auto& [member, token] : tokens) {
    const auto name = config::member_process(member);
    if (!name) continue;
    auto& known = newest[name->member];
    if (name->process > known.first) known = {name->process, token};
  }
  for (const auto& [client, known] : newest) relay_->admit(client, known.second);
}

std::optional<runtime::RelayToken> HeadRelay::admit(const std::string& member) {
  const auto client = config::member_number(member);
  if (!relay_ || !client) return std::nullopt;
  const runtime::RelayToken token = runtime::draw_relay_token();
  relay_->admit(*client, token);
  return token;
}

Result<Slot> ask_head(const runtime::EnrolOptions& options, runtime::Wire& wire,
                      const runtime::Clock& clock) {
  ASSIGN_OR_RETURN(const runtime::Invitation answer, runtime::enrol(wire, options, clock));
  Slot slot;
  slot.node = answer.node;
  ASSIGN_OR_RETURN(slot.invitation, unpack_invitation(answer.contents));
  const std::uint32_t slots = slot.invitation.slots;
  const auto member = config::member_number(answer.node, slots);
  if (!member) {
    return runtime::Error{runtime::ErrorKind::kLostPeers,
                          fmt::format("the head calls this process '{}', which none of {} members "
                                      "is",
                                      answer.node, slots)};
  }
  slot.member = *member;
  return slot;
}

HeadKeeper::HeadKeeper(MemberInvitation invitation, bool gives_again,
                       const std::vector<std::string>& members_here, MembershipFile& membership,
                       HeadRelay& relay, RunSignals* signals, const runtime::Clock& clock,
                       const runtime::Log& log)
    : invitation_(std::move(invitation)),
      gives_again_(gives_again),
      names_(std::set<std::string>(members_here.begin(), members_here.end())),
      membership_(membership),
      relay_(relay),
      signals_(signals),
      clock_(clock),
      log_(log) {}

// The members that the run begins with go before those that may join it later.
std::vector<std::string> HeadKeeper::first_of(const std::vector<std::string>& names) const {
  std::vector<std::string> needed;
  for (const std::string& name : names) {
    if (config::member_number(name, invitation_.members)) needed.push_back(name);
  }
  return needed.empty() ? names : needed;
}

Result<runtime::EnrolmentAnswer> HeadKeeper::invite(const runtime::Enrolment& enrolment,
                                                    const std::vector<std::string>& awaited) {
  // A slot of the heads before this one is free again only if they have told no View: until then a
  // process that failed may be started again as the same member.
  const HeadHistory& history = membership_.history();
  std::vector<std::string> free;
  for (const std::string& name : awaited) {
    if (history.members.empty() || !history.slots.contains(name)) free.push_back(name);
  }
  const std::vector<std::string> now = first_of(free);
  // A node of a pool starts its members at once, and none of them is another one's second try.
  const std::string from = enrolment.launched.empty()
                               ? enrolment.host
                               : fmt::format("{} {}", enrolment.host, enrolment.pid);
  const auto name = names_.choose(enrolment.node, from, now, clock_.now());
  if (!name) {
    ASSIGN_OR_RETURN(runtime::NotNow not_now,
                     names_.why_none(enrolment.node, now, free, gives_again_));
    return runtime::EnrolmentAnswer(std::move(not_now));
  }
  const auto relay_token = relay_.admit(*name);
  RETURN_IF_ERROR(membership_.add_slot(*name, relay_token, enrolment.launched));
  MemberInvitation contents = invitation_;
  contents.relay_port = relay_.port();
  if (relay_token) contents.relay_token = *relay_token;
  return runtime::EnrolmentAnswer(runtime::Invitation{*name, pack_invitation(contents)});
}

// A number is drawn once and written, so that the head in this one's place tells the same one.
std::uint64_t HeadKeeper::number_between(const std::string& one, const std::string& other) {
  const auto& known = membership_.history().neighbours;
  if (const auto found = known.find(std::minmax(one, other)); found != known.end()) {
    return found->second;
  }
  const std::uint64_t number = runtime::secret_number();
  const auto written = membership_.add_neighbours(one, other, number);
  if (!written.ok()) log_.warning(written.error().message);
  return number;
}

bool HeadKeeper::is_this_machine(const std::string& host) { return is_this_host(host); }

bool HeadKeeper::makes_room(const std::string& node) {
  if (signals_ == nullptr) return false;
  if (signals_->stopped_by() != 0) return true;
  log_.error(
      fmt::format("{} has given this head up, which stood still: another one takes its "
                  "member slot",
                  node));
  // The supervisor replaces only a head that a signal has ended.
  (void)::raise(SIGKILL);
  return true;
}

void MemberKeeper::neighbours_are(const std::vector<runtime::DirectoryEntry>& neighbours) {
  allowed_.clear();
  for (const runtime::DirectoryEntry& neighbour : neighbours) {
    if (!neighbour.key.empty()) allowed_.push_back({neighbour.key, neighbour.node});
  }
}

}  // namespace troupe::launch
