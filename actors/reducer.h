#pragma once

// Gives the replicas of its node the sums of every step. There is one Reducer per node. The
// Reducers of a View (pipeline/steps/view.h) stand in a ring, each sending to the next; what they
// add up and when it travels is in actors/ring_sum.h. A Reducer's node is connected to those that
// it sends to in its Views, and to those that it teaches.
//
// The Coordinator changes the View in two turns. First it tells the Reducer to halt. The Reducer
// forgets what is under way and answers with its next step: its replicas have, or will have, the
// sums of all steps before that, and of no other. Then the Coordinator tells it the new View. When
// the Reducer lacks the step before the View's first, another member gives it those sums; every
// Reducer keeps the sums of its newest step for that. Behind them the replicas are told of the
// View, and they contribute anew. Messages of an earlier View are dropped. Those of a later
// View are kept with their credit.
//
// In a planned change nothing is forgotten. The Reducer goes on with the steps that have begun, and
// answers with the first that has not. The View begins at the furthest of these, so each Reducer
// makes all before it in the View that it is in. A step that others have begun waits here until the
// View is told. A planned View may be without this member, which then makes what is before it, and
// waits for its release. The others tell the Coordinator when they are in that View.
//
// A member that is in no View yet learns from another one (messages.h: Teach). It is given the sums
// of every step, with which its replicas make of a state what the others make of theirs. When it
// enters its first View, the sums that it still lacks come the same way. Meanwhile its node is
// connected to those that it is likely to stand beside: a View of the number of lessons, which
// nobody enters, tells them.
//
// Where a worker has several parts, the members that have some of it make its steps among
// themselves (actors/site_rings.h). Such a step is given to nobody else, and every View begins it
// anew.
//
// Ports: in "contributions"; out "reduced.R" per replica R of the node, "samples" (Monitor); in a
// ring of several members in "ring" and out "ring.M" per other member M. Needs no thread of its
// own. The links have room for all of two steps: what the ring brings early is kept with its
// credit, and if that could fill a link the ring would stand still. The contributions of the node's
// replicas are bounded by those two steps alone.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "actors/messages.h"
#include "actors/outbox.h"
#include "actors/ring_links.h"
#include "actors/ring_sum.h"
#include "actors/sample_teller.h"
#include "actors/site_rings.h"
#include "actors/teacher.h"
#include "actors/view_turns.h"
#include "config/topology.h"
#include "runtime/actor.h"

namespace troupe::actors {

struct ReducerOptions : RingSumOptions {
  std::uint32_t first_replica = 0;  // of the node
  bool learns_first = false;  // the run has begun without it: a lesson leads to its first View
  SiteOptions sites;          // where workers are made by several replicas each
  // How many bytes of sums may wait for a member that learns; with more it is taught no longer.
  std::int64_t replay_bytes = config::ClusterSection{}.replay_bytes;
};

class Reducer final : public runtime::Actor {
  using Context = runtime::Context;
  using Message = runtime::Message;

 public:
  explicit Reducer(ReducerOptions options);

  void start(Context& context) override;
  void credit_returned(Context& context, std::string_view port) override;
  // A message that the next member did not get is lost with it, which its node is told as well.
  void undeliverable(Context&, Message, const runtime::Error&) override {}
  std::string waiting_for() const override;

 private:
  void receive_bucket(Context& context, const BucketMessage& body, Message& message);
  void receive_header(Context& context, const HeaderMessage& body, Message& message);
  // RingBucket or RingHeader: says which step and View it belongs to, and who wants it.
  template <class Body>
  void receive_ring(Context& context, const Body& body, Message& message);
  void receive_halt(Context& context, const Halt& halt);
  void receive_view(Context& context, const ViewMessage& told);
  void receive_teach(Context& context, const Teach& teach);
  void receive_neighbour_met(Context& context, const NeighbourMet& met);
  void receive_lesson(Context& context, const Lesson& lesson, Message& message);

  const pipeline::View& view() const { return *turns_.view(); }
  // It lacks the sums of the step before the View's first.
  bool is_lagging() const { return sum_.next_step() < view().first_step; }
  // True: the step that a replica of the node contributes to is begun, or begins now. Else what
  // has come waits, or is dropped: what belongs to the View that comes is contributed anew in it.
  bool begins(std::uint32_t worker, std::uint64_t step, pipeline::ViewId view, Message& message);
  // Why a View cannot be meant for this node; "": it can.
  std::string fault_of(const pipeline::View& view) const;
  bool shares_out(const pipeline::View& view) const;
  void take_view(Context& context, const ViewPointer& view);
  // A planned View begins with the next step: takes it, or parts where it is without this member.
  // False: none does.
  bool take_planned(Context& context);
  // It has all sums of the steps before the View: begins to reduce in it.
  void enter_view(Context& context);
  void take_early(Context& context);
  void begin_to_teach(Context& context, const Teacher::Pupil& pupil);
  // The members that this one sends to in the View.
  void meet_neighbours(Context& context, const pipeline::View& view);
  // While it learns: those that send to it besides, in the View that it is likely to enter.
  void meet_both_sides(Context& context, const pipeline::View& view);
  // True: all of a step's sums are here.
  bool carry_out(Context& context, runtime::Result<RingOutcome> followed);
  // What has come belongs to a step of this worker: `take` gives it to its ring.
  template <class Take>
  void take_for_site(Context& context, std::uint32_t worker, std::uint64_t step,
                     std::string_view who, const Take& take);
  // Messages to replicas of the node and to other members leave on different links, as far as each
  // has credit, so that neither holds up the other.
  void tell_replica(Context& context, std::uint32_t replica, Message message);

  ReducerOptions options_;
  RingSum sum_;
  SiteRings sites_;
  ViewTurns turns_;
  bool takes_lessons_ = false;  // it is taught, and in no View yet
  // The change that it was halted for before its lesson was here, if it learns first. Its replica
  // may have the state before that lesson, and needs no more to join while no steps are made.
  std::optional<Halt> early_halt_;
  // They belong to a View that is not entered yet, or to a step that is not to begin yet.
  std::deque<Message> early_;
  std::deque<Outbox> replicas_;
  RingLinks links_;
  Teacher teacher_;
  SampleTeller samples_;
};

}  // namespace troupe::actors
