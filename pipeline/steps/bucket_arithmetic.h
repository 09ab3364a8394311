#pragma once

// What a member of a ring does to a bucket on its way round: integers are added as they are; floats
// are decoded, added and encoded again, each time with what encoding dropped of the slot's step
// before (error feedback).
//
// Integers are exact, whoever adds them when. Floats are added in the order of replicas and of the
// ring, and every member uses what it decodes of the sum that the bucket's home has encoded: so all
// have the same bits, but other ones in a ring of another size. One thread.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/steps/buckets.h"
#include "pipeline/steps/error_feedback.h"
#include "pipeline/steps/reduction_format.h"
#include "runtime/base/buffer.h"

namespace troupe::pipeline {

class BucketArithmetic {
 public:
  // `lossy`: how floats are sent, and slot_floats[k] how many stand in front of the contributions
  // of slot k; none: there are no floats.
  BucketArithmetic(std::optional<ReductionFormat> lossy, std::vector<std::size_t> slot_floats);

  // Of what the replicas of one node contribute, one buffer each and at least one. The only one is
  // returned as it is.
  static runtime::Buffer sum_of(std::span<const runtime::Buffer> parts, bool floats);

  // How a bucket stands on the wire, `own` being the sum of the node's replicas: the member's that
  // begins it, and of all other members'. `part` is what came. Each element of a slot at most once
  // between two calls of close() for it.
  runtime::Buffer begin(std::uint32_t slot, const Bucket& bucket, runtime::Buffer own);
  runtime::Buffer add(std::uint32_t slot, const Bucket& bucket, const runtime::Buffer& part,
                      const runtime::Buffer& own);
  // From the wire to what a replica uses.
  runtime::Buffer sum_from(const Bucket& bucket, const runtime::Buffer& wire) const;

  // The step of the slot is applied, or is to be made again.
  void close(std::uint32_t slot, bool applied);

 private:
  runtime::Buffer encode(std::uint32_t slot, const Bucket& bucket, std::span<const float> values);

  std::optional<ReductionFormat> lossy_;
  std::optional<ErrorFeedback> feedback_;  // where something is dropped
};

}  // namespace troupe::pipeline
