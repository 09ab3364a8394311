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
// View is told.
//
// A member that is in no View yet learns from another one (messages.h: Teach). It is given the sums
// of every step, with which its replicas make of a state what the others make of theirs. When it
// enters its first View, the sums that it still lacks come the same way.
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
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "actors/messages.h"
#include "actors/outbox.h"
#include "actors/ring_sum.h"
#include "actors/sample_teller.h"
#include "actors/site_rings.h"
#include "config/topology.h"
#include "runtime/actor.h"

namespace troupe::actors {

struct ReducerOptions : RingSumOptions {
  std::uint32_t first_replica = 0;  // of the node
  SiteOptions sites;                // where workers are made by several replicas each
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

  // It is in a View, nothing under way is forgotten, and it lacks no sums of the steps before.
  bool is_reducing() const;
  // It was told to halt for a change, and the next View is not told.
  bool awaits_view() const;
  // The step of all members that this one, of the worker or of all, belongs to.
  std::uint64_t outer_step(std::uint32_t worker, std::uint64_t step) const;
  // A contribution of a replica of the node to a step that is not to begin yet.
  void keep_own(Message& message);
  // The first step that it does not begin in its View, as far as it knows.
  std::uint64_t end_of_view() const;
  // It lacks the sums of the step before the View's first.
  bool is_lagging() const { return sum_.next_step() < view_->first_step; }
  // Why a View cannot be meant for this node; "": it can.
  std::string fault_of(const pipeline::View& view) const;
  // All before the next planned View is made.
  bool planned_begins() const;
  void take_planned(Context& context);
  void take_view(Context& context, const ViewPointer& view);
  // It has all sums of the steps before the View: begins to reduce in it.
  void enter_view(Context& context);
  void take_early(Context& context);
  void begin_to_teach(Context& context, std::uint32_t member, std::uint32_t process);
  // A step is made: the members that learn get its sums too.
  void pass_on(Context& context);
  void send_sums(Context& context, std::uint32_t member, pipeline::ViewId view);
  // The members that this one sends to in the View.
  void meet_neighbours(Context& context, const pipeline::View& view);
  // The member's node gets a connection before there is something to send.
  void meet(Context& context, std::uint32_t member);
  Outbox& outbox_to(Context& context, std::uint32_t member);
  std::uint64_t kept_bytes() const;  // see Halted
  // True: all of a step's sums are here.
  bool carry_out(Context& context, runtime::Result<RingOutcome> followed);
  // What has come belongs to a step of this worker: `take` gives it to its ring.
  template <class Take>
  void take_for_site(Context& context, std::uint32_t worker, std::uint64_t step,
                     std::string_view who, const Take& take);

  ReducerOptions options_;
  RingSum sum_;
  SiteRings sites_;
  ViewPointer view_;                 // null: training has not begun
  std::deque<ViewPointer> planned_;  // Views that begin at a later step, in order
  pipeline::ViewId halted_for_;      // the newest change
  // That change is planned: the first step that it does not begin before it knows the View.
  std::optional<std::uint64_t> unbegun_;
  bool takes_lessons_ = false;  // it is taught, and in no View yet
  // Members that learn, with the process of each (messages.h: Teach); and those that are to be
  // taught as soon as it is met.
  std::map<std::uint32_t, std::uint32_t> taught_, to_teach_;
  std::map<std::uint32_t, std::uint32_t> met_;  // the process of each other member that was
  std::optional<StepSums> newest_;              // the step before the next one
  // They belong to a View that is not entered yet, or to a step that is not to begin yet.
  std::deque<Message> early_;
  std::deque<Outbox> replicas_;
  std::map<std::uint32_t, Outbox> members_;  // the others, by number
  SampleTeller samples_;
};

}  // namespace troupe::actors
