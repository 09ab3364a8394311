#pragma once

// Adds what all replicas of the run contribute, bucket by bucket, and gives those of its node the
// sums and the combined header. One per node; those of a View (pipeline/steps/view.h) stand in a
// ring, each sends to the next, and which bucket goes which way says
// pipeline/steps/ring_schedule.h. Every bucket sets out as soon as the node's replicas have
// contributed it, but for one thing: while kMostUnderWay bytes that began here are under way, the
// next ones of the step's attempt wait for sums to come back. So what travels stays in the caches,
// and a fast node does not fill the memory of a slow one.
//
// The Coordinator changes the View in two turns. Told to halt, the reducer forgets what is under
// way and tells the next step: of all before it, the replicas have the sums or will have them. Told
// the new View, one that lacks the step before its first gets that from another's sums, which every
// reducer keeps of the newest step; then it tells its replicas of the View, behind everything they
// got before, and they contribute anew. What belongs to an earlier View is let go of; what comes of
// a later one is kept with its credit.
//
// A member that is in no View yet learns from another one (messages.h: Teach): it is given the sums
// of every step, and its replicas make of a state what the others make of theirs. When it is in a
// View for the first time, what it lacks until then is still to come that way.
//
// Ports: in "contributions"; out "reduced.R" per replica R of the node, "samples" (Monitor); in a
// ring of several in "ring" and out "ring.M" per other member M. Messages of a step carry its
// number and attempt. Two steps may be under way, the later one's first attempt beside either of
// the earlier one's; what fits nothing ends the run, naming its sender. The links have room for all
// of two steps: what the ring brings before its turn is kept with its credit, and if that could
// fill a link, the ring would stand still. What the node's replicas contribute is bounded by those
// two steps alone. Needs no thread of its own. What becomes of the numbers says
// pipeline/steps/bucket_arithmetic.h.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/messages.h"
#include "actors/sample_teller.h"
#include "pipeline/steps/bucket_arithmetic.h"
#include "pipeline/steps/buckets.h"
#include "pipeline/steps/reduction_format.h"
#include "pipeline/steps/ring_schedule.h"
#include "runtime/actor.h"

namespace troupe::actors {

// Payload bytes of a step's attempt that one member has set out with and of which the sums have not
// come back; a larger bucket goes alone. Many times what a network holds on its way round, and more
// than what a member begins of a model of two million weights in a ring of two.
inline constexpr std::size_t kMostUnderWay = std::size_t{8} << 20;

struct ReducerOptions {
  std::uint32_t first_replica = 0;  // of its node
  std::uint32_t replicas = 1;       // of its node
  std::uint32_t member = 0;         // that its node is
  std::uint32_t micro_batches = 1;  // M: how many a complete sum holds
  std::uint64_t events = 1;         // of these
  // How floats are sent, and of each slot how many stand in front of its contributions; none: there
  // are no floats.
  std::optional<pipeline::ReductionFormat> lossy;
  std::vector<std::size_t> slot_floats{0};
  // Of sums that wait for a member that learns; with more it is taught no more.
  std::int64_t replay_bytes = std::int64_t{1} << 30;
};

class Reducer final : public runtime::Actor {
 public:
  explicit Reducer(ReducerOptions options);

  void start(runtime::Context& context) override;
  void receive(runtime::Context& context, runtime::Message message) override;
  void credit_returned(runtime::Context& context, std::string_view port) override;
  // What the next one in the ring did not get is lost with it, and the node tells of that.
  void undeliverable(runtime::Context& context, runtime::Message message,
                     const runtime::Error& cause) override;
  std::string waiting_for() const override;

 private:
  // Names of one kind in the order of their numbers: replica.2 before replica.10.
  struct ByNumber {
    bool operator()(const std::string& a, const std::string& b) const {
      return a.size() == b.size() ? a < b : a.size() < b.size();
    }
  };
  // Counted over the node's replicas, then on its way round the ring.
  struct Bucket {
    pipeline::Bucket range;
    std::map<std::string, runtime::Buffer, ByNumber> own;  // parts of the node's replicas
    std::optional<runtime::Message> part;  // of those before in the ring, not added to yet
    bool sent = false;                     // own is in what was sent on, or in the sum
    runtime::Buffer sum;                   // as it goes round; of no bytes: it is not summed yet
    bool reduced() const { return sum.size() > 0; }
  };
  struct Round {
    std::uint64_t step = 0;
    std::uint32_t attempt = 0;
    runtime::TimePoint begun_at{0};  // when the first part of it came
    std::map<std::uint32_t, Bucket> buckets;
    std::size_t under_way = 0;                 // bytes that began here and are not summed
    std::deque<std::uint32_t> waiting;         // to begin here, complete, in order
    std::uint32_t headers = 0;                 // of the node's replicas
    std::optional<pipeline::StepHeader> own;   // of these
    std::optional<pipeline::StepHeader> part;  // of those before in the ring, not combined yet
    bool sent = false;
    std::optional<pipeline::StepHeader> combined;  // of all members
  };
  struct Outbox {
    runtime::PortId port;
    std::deque<runtime::Message> messages;
    std::int64_t bytes = 0;  // of these
  };

  // Null: the actor has failed, because `who` sent what does not belong here.
  Round* round_of(runtime::Context& context, std::uint64_t step, std::uint32_t attempt,
                  std::string_view who);
  bool may_open(std::uint64_t step, std::uint32_t attempt) const;
  pipeline::RingRole role_of(std::uint32_t bucket) const;
  Bucket* bucket_of(runtime::Context& context, Round& round, const BucketMessage& body,
                    std::string_view who);
  void halt(runtime::Context& context, pipeline::ViewId change);
  void take_view(runtime::Context& context, ViewPointer view, std::string_view who);
  // What a View that cannot be meant for this node has against itself; "": nothing.
  std::string fault_of(const pipeline::View& view) const;
  // Gives the sums of the step before the View's first to those that lack them.
  void hand_over(runtime::Context& context);
  void take_handed_over(runtime::Context& context, runtime::Message message, std::string_view who);
  void teach(runtime::Context& context, const Teach& body);
  void begin_to_teach(runtime::Context& context, std::uint32_t member);
  // Who cannot be reached is sent nothing: it would wait here, and no step with it.
  void take_met(runtime::Context& context, const FellowMet& body);
  void take_lesson(runtime::Context& context, runtime::Message message, std::string_view who);
  // The sums of a step from elsewhere: takes in one message. True: they are complete.
  bool take_sums(runtime::Context& context, std::optional<Round>& round, runtime::Message message,
                 std::string_view who);
  // The step before next_step_ is in newest_: those that learn are to have it too.
  void pass_on(runtime::Context& context);
  void stop_teaching(runtime::Context& context, std::uint32_t member);
  // See Halted.
  std::uint64_t kept_bytes() const;
  void send_sums(runtime::Context& context, std::uint32_t member, pipeline::ViewId view);
  // All sums of the steps before the View are here: begins to reduce in it.
  void enter_view(runtime::Context& context);
  void take_early(runtime::Context& context);
  bool is_reducing() const;
  bool is_lagging() const;  // it lacks the sums of the step before the View's first
  void take_ring(runtime::Context& context, runtime::Message message);
  void take_contribution(runtime::Context& context, const BucketMessage& body, runtime::Buffer part,
                         std::string_view who);
  void take_contribution(runtime::Context& context, const pipeline::StepHeader& header,
                         std::string_view who);
  void take_ring(runtime::Context& context, const RingBucket& body, runtime::Message message,
                 std::string_view who);
  void take_ring(runtime::Context& context, const RingHeader& body, std::string_view who);
  // Sends the bucket on if it is its turn: own parts are complete and the part before has come.
  void advance(runtime::Context& context, Round& round, std::uint32_t number);
  static bool may_set_out(const Round& round, const Bucket& bucket);
  // A bucket that began here is summed: others may set out.
  void came_round(runtime::Context& context, Round& round, const Bucket& bucket);
  // False: the actor has failed.
  bool advance_header(runtime::Context& context, Round& round, std::string_view who);
  void pass_sum(runtime::Context& context, Round& round, std::uint32_t number,
                const runtime::Buffer& wire);
  // With the replicas.
  void share(runtime::Context& context, Round& round, std::uint32_t number,
             const runtime::Buffer& wire);
  runtime::Message bucket_message(const Round& round, std::uint32_t number,
                                  runtime::Buffer sum) const;
  static BucketMessage described(const Round& round, std::uint32_t number, pipeline::ViewId view);
  runtime::Message ring_bucket(const Round& round, std::uint32_t number, bool summed,
                               runtime::Buffer wire, pipeline::ViewId view) const;
  Outbox& outbox_to(runtime::Context& context, std::uint32_t member);
  std::uint32_t slot_of(const Round& round) const;
  void close_if_complete(runtime::Context& context, Round& round, std::string_view who);
  void tell_samples(runtime::Context& context, const Round& round);
  void refuse(runtime::Context& context, std::string_view who, std::string_view what);

  void post(runtime::Context& context, Outbox& outbox, runtime::Message message);
  void flush(runtime::Context& context, Outbox& outbox);
  void send_to_replicas(runtime::Context& context, const auto& make_message) {
    for (Outbox& replica : replicas_) post(context, replica, make_message());
  }
  void send_on(runtime::Context& context, runtime::Message message);

  ReducerOptions options_;
  std::optional<pipeline::BucketArithmetic> arithmetic_;  // of this View
  ViewPointer view_;                                      // null: training has not begun
  pipeline::ViewId halted_for_;                           // later than the View: nothing is reduced
  std::uint64_t next_step_ = 0;
  std::uint32_t next_attempt_ = 0;
  std::deque<Round> rounds_;    // under way, in order: two at most
  std::optional<Round> given_;  // step next_step_, as far as another member's sums are here
  bool learns_ = false;         // all it knows it is taught
  std::set<std::uint32_t> taught_;
  std::set<std::uint32_t> untaught_;    // to be taught as soon as they are met
  std::set<std::string> met_;           // nodes of others
  std::optional<Round> newest_;         // the step before next_step_, with its sums
  std::deque<runtime::Message> early_;  // of the ring, of a View that is not entered yet
  // What lacks credit yet, in order.
  std::deque<Outbox> replicas_;
  std::map<std::uint32_t, Outbox> members_;  // the others, by number
  SampleTeller samples_;
};

}  // namespace troupe::actors
