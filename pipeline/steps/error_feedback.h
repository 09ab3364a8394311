#pragma once

// Keeps what a lossy wire format dropped from a member's part of a sum, and adds it to the next
// part (error feedback: Seide et al., "1-bit stochastic gradient descent", Interspeech 2014;
// Karimireddy et al., "Error feedback fixes SignSGD", ICML 2019). Without it a number that is small
// beside its neighbours is rounded away at every step and never arrives. With it the sum of all
// parts that were sent differs from the exact sum by the last step's residual alone.
//
// A residual belongs to an element of a slot's contribution vector and is private to the member: no
// hash, checkpoint or other member sees it. So a run that resumes begins with none.
//
// Life of a slot's step: encode() of each range in any order, each element at most once; then
// commit() or roll_back(). Until commit() the residuals of the step are staged: nothing reads them.
// Slots are apart from each other, so steps of different slots may be in flight together; two of
// the same slot never are, since such a step reads what the one before it writes.
//
// Memory: 8 bytes an element of every slot (residual and staged residual), held from the first
// encode() of the slot on. encode() allocates nothing of the size of its range but for that first
// one.
//
// Not for use by several threads at a time.

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "pipeline/steps/reduction_format.h"

namespace troupe::pipeline {

class ErrorFeedback {
 public:
  // slot_elements[k]: size of the contribution vector of slot k. All residuals are 0. CHECKs that
  // the format drops something: kFp32 needs no feedback.
  ErrorFeedback(ReductionFormat format, const std::vector<std::size_t>& slot_elements);

  // Encodes `values`, elements [begin, begin + values.size()) of slot `slot`, each with its
  // committed residual added, and stages what decoding will miss of that sum. The member sends
  // `out`. Where the range is complete it also uses the decoded `out` itself, never `values`. The
  // residual of a sum or a decoded value that is not finite is 0, so that it ends with the step it
  // came from.
  //
  // CHECKs that out.size() is what the format takes for values.size(), that the range lies in the
  // slot, and that no element of it was encoded since the slot's last commit or roll-back.
  void encode(std::size_t slot, std::size_t begin, std::span<const float> values,
              std::span<std::byte> out);

  // The step of `slot` is applied: staged residuals take the place of the committed ones. Elements
  // that were not encoded since the last call keep theirs.
  void commit(std::size_t slot);

  // The step of `slot` is abandoned: staged residuals are dropped, and encoding the same values
  // again gives the same bytes.
  void roll_back(std::size_t slot);

 private:
  struct Slot {
    std::size_t elements = 0;
    std::vector<float> residuals;               // committed; empty: all 0
    std::vector<float> staged;                  // defined in `ranges` only
    std::map<std::size_t, std::size_t> ranges;  // encoded since the last commit: begin -> end
  };

  Slot& at(std::size_t slot);

  const ReductionFormat format_;
  std::vector<Slot> slots_;
};

}  // namespace troupe::pipeline
