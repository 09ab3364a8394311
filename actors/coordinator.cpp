#include "actors/coordinator.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "config/plan.h"
#include "runtime/base/name_list.h"
#include "runtime/base/network_range.h"
#include "runtime/transport/resolve.h"

namespace troupe::actors {
namespace {

using pipeline::Roster;
using pipeline::View;
using runtime::ChildDecision;
using runtime::ChildEnd;
using runtime::Error;
using runtime::ErrorKind;
using Phase = pipeline::Roster::Phase;

// Less than the shortest patience with a standstill.
constexpr auto kLookPause = std::chrono::milliseconds(50);

pipeline::RosterOptions roster_options(const CoordinatorOptions& options) {
  pipeline::RosterOptions roster = options;
  for (const auto& slot : options.member_slots) roster.names.push_back(slot.node);
  return roster;
}

// As the coordinator before this one knew them. A process that is to learn in the place of a member
// of the newest View learns from nobody any more.
void recall_processes(const CoordinatorOptions::Predecessor& predecessor, Roster& roster) {
  for (const auto& [member, process] : predecessor.processes) {
    if (member >= roster.members.size()) continue;  // its file may say anything
    roster.members[member].process = process;
    roster.options.names[member] = config::member_name(member, process);
  }
  for (const std::uint32_t member : predecessor.renewed) {
    if (member >= roster.members.size()) continue;
    roster.members[member].state = Roster::Member::State::kLost;
  }
}

Roster::Report report_of(const Halted& halted) {
  return {halted.change, halted.next_step, halted.unbegun, halted.kept_bytes, halted.view};
}

// The number of the host that the address leads to; "": it has none.
std::string host_of(const std::string& text, const std::string& own_host) {
  const auto address = runtime::parse_address(text);
  if (!address.ok()) return "";
  const auto alike = [&](std::string_view number) {
    return runtime::NetworkRange::bits_alike(address->host, number);
  };
  const bool is_loopback = alike("127.0.0.1") >= 8 || alike("::1") == 128;
  return is_loopback && !own_host.empty() ? own_host : address->host;
}

}  // namespace

std::optional<std::uint32_t> CoordinatorOptions::member_of(std::string_view reducer) const {
  for (std::uint32_t i = 0; i < member_slots.size(); ++i) {
    if (member_slots[i].reducer == reducer) return i;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> CoordinatorOptions::member_rooted_in(std::string_view actor) const {
  const auto found = std::ranges::find(member_slots, actor, &MemberSlot::node);
  if (found == member_slots.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - member_slots.begin());
}

Coordinator::Coordinator(CoordinatorOptions options, std::shared_ptr<RunOutcome> outcome)
    : options_(std::move(options)),
      outcome_(std::move(outcome)),
      roster_(roster_options(options_)),
      ending_(outcome_, options_.validate),
      teller_(options_, roster_, *outcome_, ending_) {}

void Coordinator::start(Context& context) {
  on<Halted>(&Coordinator::receive_halted);
  on<Entered>(&Coordinator::receive_entered);
  on<ReplicaEnd>(&Coordinator::receive_replica_end);
  on<ValidationResult>(&Coordinator::receive_validation);
  on<LastStateDone>(&Coordinator::receive_done);
  on<CheckpointRequest>(&Coordinator::receive_checkpoint_request);
  on<runtime::PeerJoined>(&Coordinator::receive_peer_joined);
  on<runtime::PeerLost>(&Coordinator::receive_peer_lost);
  on<runtime::PeerLeft>(&Coordinator::receive_peer_left);
  on<NeighbourLost>(&Coordinator::receive_neighbour_lost);
  on<Leaving>(&Coordinator::receive_leaving);
  on<MemberFailed>(&Coordinator::receive_member_failed);
  on<Learned>(&Coordinator::receive_learned);
  on<TooSlow>(&Coordinator::receive_too_slow);
  on<Pace>(&Coordinator::receive_pace);
  on<runtime::RequestAsked>(&Coordinator::receive_request);
  on<LetGo>(&Coordinator::receive_let_go);
  // A run begins in one of three ways: a head in the place of a lost one waits for its members to
  // come back; a run in one process has nobody to wait for, and nobody to look after; any other
  // waits for members to come.
  if (options_.predecessor) {
    roster_.phase = Phase::kReturning;
    recall_processes(*options_.predecessor, roster_);
    roster_.changing_since = context.now();
    roster_.causes.emplace_back("the head was lost; another process has taken its place");
    return_by_ = context.now() + options_.return_within;
    teller_.ask_for_steps_from(options_.predecessor->untold_step);
    context.after(kLookPause);
  } else if (roster_.absent().empty()) {
    pipeline::begin(roster_);
    teller_.carry_out(context);
  } else {
    context.after(kLookPause);
  }
}

// Handlers change the roster, and what follows is carried out behind them.
void Coordinator::receive(Context& context, Message message) {
  roster_.now = context.now();
  Actor::receive(context, std::move(message));
  teller_.carry_out(context);
}

void Coordinator::timer(Context& context, runtime::TimerId) {
  if (roster_.phase > Phase::kTraining) return;
  roster_.now = context.now();
  // Waiting for members is no standstill, however long people take to start them.
  if (roster_.phase < Phase::kTraining || roster_.membership.is_short()) context.post_progress();
  const auto ended = options_.ended ? options_.ended() : std::vector<MissingMember>();
  for (const MissingMember& missing : ended) {
    const auto member = roster_.member_at(missing.node);
    if (!member) continue;
    // A head that returns is told again of all that have ever ended.
    const bool is_news =
        roster_.phase != Phase::kReturning || options_.predecessor->expected.contains(*member);
    if (is_news) lose(roster_, *member, missing.error, "dead");
    roster_.members[*member].state = Roster::Member::State::kLost;
  }
  teller_.carry_out(context);
  if (roster_.phase == Phase::kReturning) {
    look_for_returned(context);
  } else {
    look_after(roster_);
  }
  teller_.carry_out(context);
  context.after(kLookPause);
}

void Coordinator::undeliverable(Context& context, Message message, const Error& cause) {
  const auto& members = roster_.members;
  const bool any_lost = std::any_of(members.begin(), members.end(), [](const auto& member) {
    return member.state == Roster::Member::State::kLost;
  });
  if (!any_lost) Actor::undeliverable(context, std::move(message), cause);
}

void Coordinator::receive_peer_joined(Context& context, const runtime::PeerJoined& peer) {
  const auto member = roster_.member_at(peer.node);
  if (!member) return;
  roster_.members[*member].is_connected = true;
  const bool is_lost = roster_.is_lost(*member);
  const bool returns = roster_.phase == Phase::kReturning;
  const bool joins = roster_.phase == Phase::kTraining ||
                     (returns && !options_.predecessor->taken.contains(*member));
  const char* state = joins && !is_lost ? "joining" : "running";
  teller_.tell_change(context, {{.name = peer.node,
                                 .host = peer.host,
                                 .pid = peer.pid,
                                 .state = state,
                                 .address = peer.address}});
  if (is_lost) {
    // The others have gone on without it, or whoever started it has told of its end already.
    const Error error{ErrorKind::kLostPeers,
                      fmt::format("the run has gone on without {}", peer.node)};
    context.send_control(roster_.nodes[*member], Message::of(Expelled{error}));
    teller_.tell_change(context, {{.name = peer.node, .state = "dead", .cause = error.message}});
    return;
  }
  arrive(roster_, *member, host_of(peer.address, options_.own_host));
  if (returns) {
    // One that comes for the first time waits until the others go on.
    if (joins) return;
    context.send_control(options_.member_slots[*member].reducer,
                         Message::of(Halt{{options_.membership.term, 1}}));
  } else if (roster_.phase == Phase::kGathering) {
    std::vector<std::string> names;
    for (const std::uint32_t each : roster_.absent()) names.push_back(roster_.name(each));
    if (!names.empty()) {
      return context.log().info(
          fmt::format("{} is here; waiting for {}", peer.node, runtime::name_list(names)));
    }
    pipeline::begin(roster_);
    context.after(kLookPause);
  }
}

void Coordinator::receive_peer_lost(Context&, const runtime::PeerLost& lost) {
  const auto member = roster_.member_at(lost.node);
  if (!member) return;
  teller_.answer_drains(
      *member, Error{ErrorKind::kLostPeers,
                     fmt::format("{} was lost while it left: {}; the others go on without it",
                                 lost.node, lost.error.message)});
  roster_.members[*member].is_connected = false;
  lose(roster_, *member, lost.error, "dead");
}

void Coordinator::receive_peer_left(Context&, const runtime::PeerLeft& left) {
  const auto member = roster_.member_at(left.node);
  if (!member) return;
  teller_.answer_drains(*member, left.node + " has left the run");
  roster_.members[*member].is_connected = false;
  const Error error{ErrorKind::kLostPeers, left.node + " has left the run"};
  lose(roster_, *member, error, "ended");
}

void Coordinator::receive_neighbour_lost(Context& context, const NeighbourLost& lost,
                                         Message& message) {
  const auto from = options_.member_rooted_in(message.sender_name());
  const auto about = roster_.member_at(lost.node);
  if (!from || !about || roster_.phase == Phase::kOver) return;
  roster_.quarrels.add({*from, *about, lost.error, context.now()});
}

void Coordinator::receive_leaving(Context&, const Leaving&, Message& message) {
  if (roster_.phase == Phase::kReturning) return deferred_.push_back(std::move(message));
  const auto member = options_.member_rooted_in(message.sender_name());
  if (member) let_leave(roster_, *member, {});
}

void Coordinator::receive_member_failed(Context&, const MemberFailed& failed, Message& message) {
  if (roster_.phase == Phase::kReturning) return deferred_.push_back(std::move(message));
  std::optional<std::uint32_t> replica;
  for (std::uint32_t i = 0; i < options_.membership.weights.size(); ++i) {
    if (failed.actor == replica_name(i)) replica = i;
  }
  note_failure(roster_, options_.member_rooted_in(message.sender_name()), replica, failed.error);
}

void Coordinator::receive_learned(Context&, const Learned& learned, Message& message) {
  if (message.sender_name() != replica_name(learned.replica)) return;
  note_learned(roster_, learned.replica, learned.steps, learned.complete);
}

void Coordinator::receive_too_slow(Context&, const TooSlow& slow, Message& message) {
  note_too_slow(roster_, slow.member, slow.process, options_.member_of(message.sender_name()));
}

void Coordinator::receive_pace(Context& context, const Pace& pace, Message& message) {
  if (message.sender_name() != replica_name(pace.replica)) return;
  if (pace.micro_batches == 0) return note_idle(roster_, pace.replica);
  if (options_.has_pools) context.send_control("provisioner", Message::of(Pace(pace)));
  note_pace(roster_, pace.replica, pace.iteration, static_cast<double>(pace.micro_batches),
            pace.seconds);
}

void Coordinator::receive_request(Context& context, const runtime::RequestAsked& asked) {
  if (asked.request.kind == runtime::HeadRequest::Kind::kDrain) {
    return teller_.drain(context, asked);
  }
  if (options_.has_pools) return context.send_control("provisioner", Message::of(asked));
  asked.reply->answer(Error{ErrorKind::kUsage,
                            "the run has no pools; its topology would have them at cluster.pools"});
}

void Coordinator::receive_let_go(Context& context, const LetGo& asked) {
  teller_.let_go(context, asked);
}

void Coordinator::receive_halted(Context& context, const Halted& halted, Message& message) {
  const auto member = options_.member_of(message.sender_name());
  if (!member) return;
  if (roster_.phase == Phase::kReturning) {
    reports_[*member] = report_of(halted);
    return look_for_returned(context);
  }
  note_halted(roster_, *member, report_of(halted));
}

void Coordinator::receive_entered(Context&, const Entered& entered, Message& message) {
  const auto member = options_.member_of(message.sender_name());
  if (member) note_entered(roster_, *member, entered.view);
}

// The newest View that anybody is in is the one to go on from, because nobody can have made a step
// in a later one. When nobody is in a View, either the run was over, or the head was lost before it
// told anybody of the first View.
void Coordinator::look_for_returned(Context& context) {
  const View* newest = pipeline::newest_view(reports_);
  std::set<std::uint32_t> awaited = options_.predecessor->expected;
  if (newest != nullptr) awaited.insert(newest->ring.begin(), newest->ring.end());
  std::erase_if(awaited, [&](std::uint32_t member) {
    return roster_.is_lost(member) || reports_.contains(member);
  });
  if (!awaited.empty() && context.now() < return_by_) return;
  const std::vector<std::uint32_t>& ring = options_.membership.ring;
  const bool all_here = std::all_of(ring.begin(), ring.end(), [&](std::uint32_t member) {
    return reports_.contains(member) && !roster_.is_lost(member);
  });
  if (newest != nullptr) {
    go_on_from(roster_, View(*newest), std::exchange(reports_, {}), options_.predecessor->taken);
  } else if (options_.predecessor->made_all) {
    outcome_->state = options_.state;
    outcome_->stopped = roster_.stop_asked;
    roster_.phase = Phase::kOver;
    ending_.end_early(context, roster_, options_.stop, *options_.state);
    return ending_.save(context, roster_);
  } else if (all_here) {
    roster_.causes.clear();
    pipeline::begin(roster_);
  } else {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.return_within);
    const std::string why =
        awaited.empty() ? "all of them were lost with the head or after it"
                        : fmt::format("none did within {} s of its restart", seconds.count());
    ending_.note(Error{ErrorKind::kLostPeers,
                       fmt::format("no member that trains has come back to the head: {}", why)});
    return ending_.end(context, roster_);
  }
  if (roster_.stop_asked) pipeline::stop(roster_, std::nullopt);
  for (Message& message : std::exchange(deferred_, {})) receive(context, std::move(message));
  teach_newcomers(roster_);
}

// When training is over only a validation takes long, and the state that it validates is the last.
void Coordinator::stop(Context& context) {
  roster_.now = context.now();
  pipeline::stop(roster_, std::nullopt);
  teller_.carry_out(context);
  if (!ending_.awaits("validator")) return;
  outcome_->stopped = true;
  context.stop_child("validator");
}

void Coordinator::receive_replica_end(Context& context, const ReplicaEnd& end) {
  if (roster_.phase < Phase::kTraining || roster_.membership.view().ring.empty()) return;
  ending_.add(end, end.replica == roster_.leading_replica());
  // A head that was lost had told replicas to stop, but not all of them.
  const bool too_early = end.state != nullptr && end.state->iteration < options_.iterations;
  if (too_early) ending_.end_early(context, roster_, options_.stop, *end.state);
  if (too_early && !outcome_->ended_early && !end.error && !outcome_->stopped) {
    pipeline::stop(roster_, Error{ErrorKind::kLostPeers,
                                  "the head was lost while it ended the run; go "
                                  "on with --resume"});
  }
  note_replica_end(roster_, end.replica);
}

// After training the last state is written again, where its file has gone.
void Coordinator::receive_checkpoint_request(Context& context, const CheckpointRequest&) {
  if (roster_.phase == Phase::kTraining || roster_.phase == Phase::kStopping) {
    context.send_control(replica_name(roster_.leading_replica()), Message::of(CheckpointRequest{}));
  } else if (roster_.phase == Phase::kOver && outcome_->state != nullptr) {
    context.send_control("checkpointer", Message::of(Snapshot{outcome_->state}));
  }
}

void Coordinator::receive_done(Context& context, const LastStateDone& done, Message& message) {
  if (done.state != nullptr) outcome_->state = done.state;
  ending_.take_done(context, roster_, message.sender_name(), done.error);
}

void Coordinator::receive_validation(Context& context, const ValidationResult& result) {
  outcome_->validation = {result.table, result.json};
  context.send_control("checkpointer",
                       Message::of(ValidatedState{result.state, result.figure, result.distance}));
}

// An actor that cannot go on ends the run, but not before the last committed state is saved, as far
// as those that save it are alive. One that has ended will not answer any more.
ChildDecision Coordinator::child_ended(Context& context, const ChildEnd& end) {
  const bool is_over = roster_.phase == Phase::kOver;
  const bool trains = roster_.phase >= Phase::kTraining && !is_over;
  const bool needed = end.name == "checkpointer" || end.name == "monitor" ||
                      (end.name.starts_with("replica.") && trains);
  if (needed && end.error) {
    ending_.release_members(context, roster_);
    return ChildDecision::kEscalate;
  }
  if (is_over) {
    ending_.take_done(context, roster_, end.name, end.error);
  } else if (end.error) {
    roster_.now = context.now();
    pipeline::stop(roster_, end.error);
    teller_.carry_out(context);
  }
  return ChildDecision::kIgnore;
}

std::string Coordinator::waiting_for() const {
  switch (roster_.phase) {
    case Phase::kGathering:
      return fmt::format("{} members to come", roster_.absent().size());
    case Phase::kReturning:
      return fmt::format("members to come back: {} have told where they are", reports_.size());
    case Phase::kTraining:
    case Phase::kStopping:
      if (roster_.membership.is_short()) {
        return fmt::format("members to join: {} of {} are here",
                           roster_.membership.participants().size(),
                           options_.membership.min_members);
      }
      if (roster_.membership.change()) {
        return fmt::format("member.{} to halt",
                           fmt::join(roster_.membership.not_halted(), ", member."));
      }
      return fmt::format("the end of training: {} replicas have not ended",
                         roster_.training.size());
    case Phase::kOver:
      return ending_.waiting_for();
  }
  return {};
}

}  // namespace troupe::actors
