#pragma once

// The arithmetic of a ring member on a bucket that goes round. Integers are added as they are.
// Floats are decoded, added and encoded again. Each encoding adds what the encoding of the slot's
// step before dropped (error feedback).
//
// Integer sums are exact in any order. Floats are added in the order of replicas and of the ring,
// and every member uses the decoded form of the sum that the bucket's home has encoded. So all
// members have the same bits, and a ring of another size or other rows has other bits. One thread.

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

  // The sum of the contributions of one node's replicas, one buffer each and at least one. A single
  // buffer is returned as it is.
  static runtime::Buffer sum_of(std::span<const runtime::Buffer> parts, SumKind kind);

  // The bucket as it goes onto the wire; `own` is the sum of the node's replicas, and `parts` are
  // the received bytes that it is added to: none where the bucket begins. Each element of a slot at
  // most once between two calls of close() for it.
  runtime::Buffer add(std::uint32_t slot, const Bucket& bucket,
                      std::span<const runtime::Buffer> parts, runtime::Buffer own);
  // From the wire to what a replica uses.
  runtime::Buffer sum_from(const Bucket& bucket, const runtime::Buffer& wire) const;

  // The step of the slot is applied, or is to be made again.
  void close(std::uint32_t slot, bool applied);

 private:
  std::optional<ReductionFormat> lossy_;
  std::optional<ErrorFeedback> feedback_;  // where something is dropped
};

}  // namespace troupe::pipeline
