#include "pipeline/data/read_threads.h"

namespace troupe::pipeline {
namespace {

constexpr double kLeastSeconds = 0.5;
constexpr double kMoreAbove = 0.9;       // of the time in reading
constexpr double kFewerBelow = 2.0 / 3;  // that it would be with one thread fewer

}  // namespace

bool ReadThreads::note(double reading_seconds, double waiting_seconds) {
  reading_ += reading_seconds;
  waiting_ += waiting_seconds;
  const double all = reading_ + waiting_;
  if (all < kLeastSeconds) return false;
  const double share = reading_ / all;
  reading_ = waiting_ = 0;
  const int before = threads_;
  if (share > kMoreAbove && threads_ < most_) {
    ++threads_;
  } else if (threads_ > 1 && share * threads_ / (threads_ - 1) < kFewerBelow) {
    --threads_;
  }
  return threads_ != before;
}

}  // namespace troupe::pipeline
