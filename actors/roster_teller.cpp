#include "actors/roster_teller.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "actors/coordinator.h"
#include "actors/no_more_nodes.h"
#include "config/plan.h"
#include "runtime/base/name_list.h"
#include "runtime/base/overloaded.h"

namespace troupe::actors {
namespace {

using pipeline::Roster;
using pipeline::View;
using runtime::Context;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Message;
using runtime::Overloaded;

// Saving and validating may take long, in which nodes would still be asked for.
void close_pools(Context& context, const CoordinatorOptions& options) {
  if (options.has_pools) context.send_control("provisioner", Message::of(NoMoreNodes{}));
}

// Why the last member that makes steps cannot be asked to leave, for whoever asks.
Error objection_to_last(const std::string& node) {
  return {ErrorKind::kUsage,
          fmt::format("{} is the last member that makes steps, and the run would end without it; "
                      "let another one join first, or end the run with SIGTERM to its head, which "
                      "saves its state",
                      node)};
}

// Why a node cannot be asked to leave; nothing: it can.
std::optional<Error> objection_to_drain(const Roster& roster, const std::string& node) {
  const auto usage = [](std::string text) { return Error{ErrorKind::kUsage, std::move(text)}; };
  if (roster.phase > Roster::Phase::kTraining) {
    return Error{ErrorKind::kLostPeers, "the run is ending, and its members with it"};
  }
  if (roster.phase == Roster::Phase::kReturning) {
    return Error{ErrorKind::kLostPeers,
                 "the head has just been restarted, and its members are on their way back; try "
                 "again in a moment"};
  }
  if (node == config::kHeadNode) {
    return usage(
        fmt::format("{} leads the run, which would end without it; SIGTERM to it ends the run and "
                    "saves its state",
                    node));
  }
  const auto member = roster.member_at(node);
  std::vector<std::string> members;
  for (const std::uint32_t each : roster.membership.present()) members.push_back(roster.name(each));
  if (node.empty() || !member) {
    return usage(
        fmt::format("no member of the run has the name '{}'; those that make its steps are {}",
                    node, runtime::name_list(members)));
  }
  if (roster.is_lost(*member)) return usage(fmt::format("{} has already left the run", node));
  if (roster.phase == Roster::Phase::kGathering) {
    return usage(
        fmt::format("the run has not begun, and cannot without {}; stop it, or try again when it "
                    "trains",
                    node));
  }
  if (!roster.is_here(*member)) {
    return usage(
        fmt::format("nobody has joined the run as {} yet; those that make its steps are {}", node,
                    runtime::name_list(members)));
  }
  if (roster.is_last(*member)) return objection_to_last(node);
  return std::nullopt;
}

}  // namespace

void RosterTeller::drain(Context& context, const runtime::RequestAsked& asked) {
  const std::string& node = asked.request.name;
  const auto member = roster_.member_at(node);
  // A request joins those that wait for the same already.
  if (member && drains_.contains(*member)) {
    drains_.emplace(*member, asked.reply);
    return;
  }
  if (auto objection = objection_to_drain(roster_, node)) {
    return asked.reply->answer(std::move(*objection));
  }
  drains_.emplace(*member, asked.reply);
  let_leave(context, *member, fmt::format("{} has asked for it (troupe drain)", asked.by));
}

void RosterTeller::let_go(Context& context, const LetGo& asked) {
  for (const std::string& node : asked.nodes) {
    if (const auto objection = objection_to_drain(roster_, node)) {
      const auto member = roster_.member_at(node);
      const bool is_last = member && roster_.is_here(*member) && roster_.is_last(*member);
      context.send_control("provisioner", Message::of(Kept{node, objection->message, is_last}));
    } else {
      let_leave(context, *roster_.member_at(node), asked.why);
    }
  }
}

void RosterTeller::let_leave(Context& context, std::uint32_t member, const std::string& why) {
  context.log().info(fmt::format("{} is let go: {}", roster_.name(member), why));
  pipeline::let_leave(roster_, member, why);
}

void RosterTeller::answer_drains(std::uint32_t member, const runtime::Result<std::string>& answer) {
  const auto [first, last] = drains_.equal_range(member);
  for (auto each = first; each != last; ++each) each->second->answer(answer);
  drains_.erase(first, last);
}

void RosterTeller::tell_change(Context& context, const NodeChange& change) const {
  context.send_control("monitor", Message::of(change));
  if (options_.has_pools) context.send_control("provisioner", Message::of(change));
}

// Halt and Teach go to a member's Reducer, which knows the steps that the member has reached.
// Expelled and Release go to the root actor of its node, which has the node's name.
void RosterTeller::carry_out(Context& context) {
  const auto reducer = [&](std::uint32_t member) { return options_.member_slots[member].reducer; };
  const Overloaded act{
      [&](const pipeline::SendHalt& halt) {
        context.send_control(reducer(halt.member), Message::of(Halt{halt.change, halt.planned}));
      },
      [&](const pipeline::SendTeach& teach) {
        context.send_control(
            reducer(teach.teacher),
            Message::of(Teach{teach.member, teach.begins, roster_.members[teach.member].process}));
        if (teach.begins) tell_likely_view(context, teach.member);
      },
      [&](const pipeline::SendBegin& begins) {
        context.send_control(replica_name(begins.replica),
                             Message::of(BeginTraining{options_.state}));
      },
      [&](const pipeline::SendExpelled& expelled) {
        context.send_control(roster_.nodes[expelled.member], Message::of(Expelled{expelled.error}));
      },
      [&](const pipeline::SendRelease& release) {
        context.send_control(roster_.nodes[release.member], Message::of(Release{release.why}));
      },
      [&](const pipeline::AwaitAnother& awaited) { await_another(context, awaited); },
      [&](const pipeline::TellLoss& loss) {
        // One that ends as it should may still have something to say.
        if (loss.state == "dead") context.go_on_without(roster_.nodes[loss.member]);
        tell_change(context, {{.name = roster_.name(loss.member),
                               .state = loss.state,
                               .cause = loss.error.message}});
        // After training the Validator may still wait for snapshots of the leader. Those of a lost
        // one never come.
        const bool led = roster_.phase == Roster::Phase::kOver &&
                         !roster_.membership.view().ring.empty() &&
                         loss.member == roster_.membership.view().leader();
        if (led) ending_.forget_leader(context, roster_);
      },
      [&](const pipeline::TellView& told) { tell_view(context, told); },
      [&](const pipeline::RefuseLeave& refused) {
        const Error objection = objection_to_last(roster_.name(refused.member));
        answer_drains(refused.member, objection);
        if (options_.has_pools) {
          context.send_control("provisioner", Message::of(Kept{roster_.name(refused.member),
                                                               objection.message, true}));
        }
      },
      [&](const pipeline::StopTrainingOf& stopped) {
        ending_.note(stopped.error);
        if (stopped.stops) outcome_.stopped = true;
        close_pools(context, options_);
        for (const std::uint32_t replica : stopped.replicas) {
          context.send_control(replica_name(replica), Message::of(StopTraining{}));
        }
      },
      [&](const pipeline::SaveState&) {
        close_pools(context, options_);
        ending_.save(context, roster_);
      },
      [&](const pipeline::EndRun&) { ending_.end(context, roster_); },
      [&](const pipeline::LogLine& line) {
        line.warns ? context.log().warning(line.text) : context.log().info(line.text);
      }};
  for (const pipeline::RosterAction& action : std::exchange(roster_.actions, {})) {
    std::visit(act, action);
  }
}

// From here on the earlier process is known by no name.
void RosterTeller::await_another(Context& context, const pipeline::AwaitAnother& awaited) const {
  std::string& name = roster_.options.names[awaited.member];
  name = config::member_name(awaited.member, awaited.process);
  context.await_another(roster_.nodes[awaited.member], name);
  if (!options_.validate) return;
  ReplicasRenewed renewed;
  for (const std::uint32_t replica : roster_.replicas_of(awaited.member)) {
    renewed.replicas.push_back(replica_name(replica));
  }
  context.send_control("validator", Message::of(std::move(renewed)));
}

// Its node meets those beside it while it learns, so that nobody waits for that in the View.
void RosterTeller::tell_likely_view(Context& context, std::uint32_t newcomer) const {
  View view = roster_.membership.view_with(newcomer);
  view.id = kLesson;
  context.send_control(options_.member_slots[newcomer].reducer,
                       Message::of(ViewMessage{std::make_shared<const View>(std::move(view))}));
}

// A coordinator that may take this one's place knows of the View before anybody is in it.
void RosterTeller::tell_members(Context& context, RunOutcome::ViewChange& change,
                                std::optional<std::uint32_t> parted) const {
  change.id = text_of(change.view.id);
  change.first_step = change.view.first_step;
  if (options_.time_of_day) change.time = options_.time_of_day();
  for (const std::uint32_t member : change.view.ring) {
    change.members.push_back(roster_.name(member));
  }
  if (options_.on_view) options_.on_view(change);
  const auto shared = std::make_shared<const View>(change.view);
  std::vector<std::uint32_t> told = change.view.ring;
  if (parted) told.push_back(*parted);
  for (const std::uint32_t member : told) {
    context.send_control(options_.member_slots[member].reducer, Message::of(ViewMessage{shared}));
  }
  if (options_.has_pools) context.send_control("provisioner", Message::of(ViewMessage{shared}));
}

void RosterTeller::tell_view(Context& context, const pipeline::TellView& told) {
  RunOutcome::ViewChange change;
  change.view = told.view;
  if (told.begins) return tell_members(context, change, {});
  change.causes = told.causes;
  change.shared_anew = told.shared_anew;
  change.taken_over = told.taken_over;
  change.kept_bytes = told.kept_bytes;
  change.halted_seconds = told.halted_seconds;
  for (const std::uint32_t each : told.joined) {
    change.joined.push_back(roster_.name(each));
    tell_change(context, {{.name = roster_.name(each), .state = "running"}});
  }
  tell_members(context, change, told.parted);
  // A head in the place of a lost one lacks what was told while there was none: the leader tells
  // these steps again, and sends a snapshot.
  if (untold_from_) {
    const std::string leader = replica_name(roster_.leading_replica());
    context.send_control(leader, Message::of(TellSteps{*std::exchange(untold_from_, {})}));
    context.send_control(leader, Message::of(CheckpointRequest{}));
  }
  const std::uint64_t step = change.view.first_step;
  context.log().info(fmt::format("View {}: {} make the steps from {} on", change.id,
                                 runtime::name_list(change.members), step));
  const telemetry::ViewFacts& facts = change;
  context.send_control("monitor", Message::of(EventMetrics{{0.0, step, facts}}));
  outcome_.changes.push_back(std::move(change));
}

}  // namespace troupe::actors
