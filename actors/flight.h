#pragma once

// A step under way: what one replica contributes to it, as messages to the reducer, and the sums
// that come back.
//
// An attempt's buckets go out from the end of the contribution vector to its front, each as soon as
// all of its elements are computed. Its header goes last, when the state before the step is known.
// One thread.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "actors/messages.h"
#include "pipeline/steps/buckets.h"
#include "pipeline/steps/step_record.h"
#include "pipeline/steps/step_share.h"
#include "pipeline/steps/view.h"
#include "runtime/base/clock.h"
#include "runtime/message.h"

namespace troupe::actors {

class Flight {
 public:
  // Takes a message for the reducer.
  using Post = std::function<void(runtime::Message)>;

  // Buckets of at most segment_bytes, for the ring of the View. `worker`: it is a step of that one,
  // and the View that of its site.
  Flight(pipeline::StepShare share, std::int64_t segment_bytes, const pipeline::View& view,
         std::uint32_t worker = kOfAll);

  // In another View: everything goes out again, and the share may have taken over micro-batches.
  void restart(const pipeline::View& view);

  pipeline::StepShare& share() { return share_; }
  const pipeline::StepShare& share() const { return share_; }

  // Begins an attempt with these scales. Does nothing if it is under way already.
  void begin(std::uint32_t attempt, const std::vector<std::int16_t>& scales,
             runtime::TimePoint now);
  // Posts the buckets of the attempt that lie in [from, end of the vector) and are not out yet.
  void add_buckets(std::int64_t from, const Post& post);
  // Posts the header, when all buckets are out. `distance`: what it is to say of the state, see
  // StepHeader::judged. `next`: who may have the turn behind this step.
  void add_header(const runtime::Hash128& state, std::optional<double> distance,
                  std::vector<pipeline::TurnOffer> next, const Post& post);

  // All buckets are out, and all is computed, micro-batches that are only compared included.
  bool contributed() const { return contributed_; }
  bool announced() const { return announced_; }  // and the header is out
  std::uint32_t attempt() const { return record_.header.attempt; }
  runtime::TimePoint begun_at() const { return begun_at_; }

  // Takes a bucket of sums; false: it is none of this attempt.
  bool take(const BucketMessage& body, const runtime::Buffer& sums);
  // Takes the reduced header, which comes last.
  void take(const pipeline::StepHeader& header) { record_.header = header; }
  // The step's record, when all has come. Before that its header is the replica's own.
  const pipeline::StepRecord& record() const { return record_; }

 private:
  pipeline::StepShare share_;
  std::int64_t segment_bytes_;
  pipeline::ViewId view_;
  std::uint32_t worker_;
  pipeline::SumLayout layout_;
  std::vector<pipeline::Bucket> buckets_;
  std::size_t next_ = 0;  // the first that is not out
  bool begun_ = false, contributed_ = false, announced_ = false;
  runtime::TimePoint begun_at_{0};
  pipeline::StepRecord record_;
};

}  // namespace troupe::actors
