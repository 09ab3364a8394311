#pragma once

// Adds what the replicas of a run contribute to each step: the part of one member of the ring.
//
// A RingAttempt is an attempt at a step. In it every bucket of the step goes through these
// stations:
//
//   own        the parts of the node's replicas are here
//   parts      what other members have added up is here: of those before in the ring, or in both
//              rings that meet here
//   sent       own and parts were added and have gone on, or have become the sum
//   sum        the sum of all members is here, goes on, and is told to the replicas
//
// Where a bucket begins, is complete and stops says pipeline/steps/ring_schedule.h. The step's
// header takes the same way. A bucket sets out as soon as it is here, with one exception: while
// kMostUnderWay bytes that began at this member are under way, further buckets of the attempt wait
// for sums to come back, in their order: in a ring of rings a bucket begins at several members, and
// they would wait for each other's if each let another one go first. So what travels stays in the
// caches, and a fast node does not fill the memory of a slow one.
//
// Two of them may be open, the first attempt at a step beside any attempt at the step before. In a
// ring of rings there may be one more: a member of another row can have had the sums of an attempt
// that are still on their way here, and have gone on. What fits into none is refused: the run ends,
// and the error names the sender.
//
// A member that lacks the sums of a step can also be given them complete (take_given). Nothing here
// sends, waits or knows the time: each call returns what its caller has to send. One thread.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "actors/messages.h"
#include "pipeline/steps/bucket_arithmetic.h"
#include "pipeline/steps/buckets.h"
#include "pipeline/steps/reduction_format.h"
#include "pipeline/steps/ring_schedule.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/message.h"

namespace troupe::actors {

// Payload bytes of an attempt that one member has set out with and whose sums have not come back; a
// larger bucket goes alone. This is many times what a network holds on its way round, and more than
// one member begins of a model of two million weights in a ring of two.
inline constexpr std::size_t kMostUnderWay = std::size_t{8} << 20;

struct RingSumOptions {
  std::uint32_t replicas = 1;                  // of the node
  std::uint32_t member = 0;                    // the node's number
  std::uint32_t micro_batches = 1;             // M: of an iteration, how many a complete sum holds
  std::uint64_t events = 1;                    // in these
  pipeline::ShortIteration short_iteration{};  // of the run; its sums hold fewer
  // Where workers take turns: how many of the micro-batches a sum holds; an iteration's last those
  // that are left.
  std::optional<std::uint32_t> at_a_time = {};
  // How floats are sent, and for each slot how many stand in front of its contributions; none:
  // there are no floats.
  std::optional<pipeline::ReductionFormat> lossy;
  std::vector<std::size_t> slot_floats{0};
};

// The sums of one step, as they go round the ring.
struct StepSums {
  struct Bucket {
    pipeline::Bucket range;
    runtime::Buffer sum;  // of no bytes: it is not here yet
  };
  std::uint64_t step = 0;
  std::uint32_t attempt = 0;
  std::map<std::uint32_t, Bucket> buckets;  // by number
  pipeline::StepHeader header;

  std::size_t bytes() const;  // of all sums
  // The messages that carry bucket `number`, and the header, to another member.
  RingBucket body(std::uint32_t number, bool summed, pipeline::ViewId view,
                  std::optional<pipeline::ReductionFormat> lossy) const;
};

// The consequences of something that has come.
struct RingOutcome {
  // To be sent, in this order. A RingBucket or RingHeader goes to a position of the ring, a
  // BucketMessage or HeaderMessage to every replica of the node.
  struct Sending {
    std::variant<RingBucket, RingHeader, BucketMessage, HeaderMessage> body;
    runtime::Buffer sums;  // the payload of a bucket
    std::uint32_t to = 0;  // the position
  };
  std::vector<Sending> sendings;
  // The attempt is over: when its first part came, and how many bytes were added up.
  struct Ended {
    runtime::TimePoint begun_at{0};
    std::size_t bytes = 0;
  };
  std::optional<Ended> ended;
  std::optional<StepSums> summed;  // the step is made: the sums of all members
};

// One attempt at a step, as far as it is here.
struct RingAttempt {
  // Names of one kind in the order of their numbers: replica.2 before replica.10.
  struct ByNumber {
    bool operator()(const std::string& a, const std::string& b) const {
      return a.size() == b.size() ? a < b : a.size() < b.size();
    }
  };
  // The parts of a bucket that are here, besides its sum.
  struct Parts {
    std::map<std::string, runtime::Buffer, ByNumber> own;      // by replica
    std::map<std::string, runtime::Message, ByNumber> before;  // by Reducer, not added yet
    bool sent = false;
  };
  StepSums sums;
  std::map<std::uint32_t, Parts> parts;     // by bucket, for the same buckets as the sums
  runtime::TimePoint begun_at{0};           // when the first part of it came
  std::size_t under_way = 0;                // bytes that began here and are not summed
  std::deque<std::uint32_t> waiting;        // complete buckets that are to begin here, in order
  std::uint32_t headers = 0;                // of the node's replicas
  std::optional<pipeline::StepHeader> own;  // combined of these
  std::map<std::string, pipeline::StepHeader, ByNumber> before;  // by Reducer
  bool sent = false;                                             // own and parts have gone on
  std::size_t reduced = 0;                                       // so many buckets are summed
  bool combined = false;  // sums.header is that of all members

  bool may_set_out(std::uint32_t number, const pipeline::Bucket& bucket) const {
    if (!waiting.empty() && waiting.front() != number) return false;
    return under_way == 0 || under_way + bucket.bytes() <= kMostUnderWay;
  }
};

class RingSum {
 public:
  explicit RingSum(const RingSumOptions& options);

  // The step that is to be made next. Set once, before the first View or with the first lesson.
  void begin_at(std::uint64_t step) { next_step_ = step; }
  std::uint64_t next_step() const { return next_step_; }
  // The first step of which nothing is here.
  std::uint64_t unbegun() const {
    return attempts_.empty() ? next_step_ + (next_attempt_ > 0 ? 1 : 0)
                             : attempts_.back().sums.step + 1;
  }
  // Forgets what is under way, because it will be contributed again in another View; and what was
  // given of the next step, unless `keep_given`.
  void forget(bool keep_given);
  // From now on the sums are made by the ring of this View.
  void enter(const pipeline::View& view);

  // In the calls below an Error (kLostPeers) refuses what has come: the run cannot go on.
  //
  // A replica of the node contributes a bucket, or its header behind all of them.
  runtime::Result<RingOutcome> contribute(const BucketMessage& body, runtime::Buffer part,
                                          std::string_view who, runtime::TimePoint now);
  runtime::Result<RingOutcome> contribute(const pipeline::StepHeader& header, std::string_view who,
                                          runtime::TimePoint now);
  // Something came round the ring. A part keeps its message, and with it the credit of its link,
  // until it is added.
  runtime::Result<RingOutcome> take_ring(const RingBucket& body, runtime::Message& message,
                                         std::string_view who, runtime::TimePoint now);
  runtime::Result<RingOutcome> take_ring(const RingHeader& body, runtime::Message& message,
                                         std::string_view who, runtime::TimePoint now);
  // Another member gives the sums of the next step, the buckets first and then the header.
  runtime::Result<RingOutcome> take_given(const RingBucket& body, runtime::Message& message);
  runtime::Result<RingOutcome> take_given(const RingHeader& body, runtime::Message& message);

  // The error of a run in which `who` has sent `what` although it does not belong here.
  runtime::Error refusal(std::string_view who, std::string_view what) const;
  // The thing that the first open attempt waits for, for people; "" when none is open.
  std::string waiting_for() const;

 private:
  runtime::Result<RingAttempt*> attempt_of(std::uint64_t step, std::uint32_t attempt,
                                           std::string_view who, runtime::TimePoint now);
  bool may_open(std::uint64_t step, std::uint32_t attempt) const;
  runtime::Result<RingAttempt::Parts*> parts_of(RingAttempt& attempt, const BucketMessage& body,
                                                std::string_view who) const;
  pipeline::BucketRole role_of(std::uint32_t bucket) const;
  std::uint32_t slot_of(const RingAttempt& attempt) const;
  // How many the step's complete sum holds.
  std::uint32_t micro_batches_of(std::uint64_t step) const;
  // Sends the bucket on if it is complete as far as this member.
  void advance(RingAttempt& attempt, std::uint32_t number, RingOutcome& out);
  // A bucket's sum is here, as it goes round.
  void pass_sum(RingAttempt& attempt, std::uint32_t number, const runtime::Buffer& wire,
                RingOutcome& out);
  // A bucket that began here is summed, so others may set out.
  void set_out_waiting(RingAttempt& attempt, std::uint32_t came_round, RingOutcome& out);
  // Gives the replicas a sum, and keeps it.
  void share(StepSums& sums, std::uint32_t number, const runtime::Buffer& wire, RingOutcome& out);
  runtime::Result<void> advance_header(RingAttempt& attempt, std::string_view who,
                                       RingOutcome& out);
  runtime::Result<void> close_if_complete(RingAttempt& attempt, std::string_view who,
                                          RingOutcome& out);

  RingSumOptions options_;
  std::optional<pipeline::BucketArithmetic> arithmetic_;  // of this View
  pipeline::ViewId view_;
  pipeline::BucketRoutes routes_{1};  // of the View's ring
  std::uint32_t position_ = 0;        // in it
  std::uint32_t ahead_ = 0;           // attempts that another member may have ended before this one
  std::uint64_t next_step_ = 0;
  std::uint32_t next_attempt_ = 0;
  std::deque<RingAttempt> attempts_;  // under way, in order
  std::optional<StepSums> given_;     // of next_step_, as far as another member's sums are here
};

}  // namespace troupe::actors
