#pragma once

// How many threads read ahead of what computes, by how long the reader waits for room. One that
// hardly waits is what the others wait for. Pure; one thread.

namespace troupe::pipeline {

class ReadThreads {
 public:
  // Begins with one of `most`, from 1.
  explicit ReadThreads(int most) : most_(most) {}

  int threads() const { return threads_; }
  // So many seconds went by in reading, and so many in waiting for room. True: threads() is another
  // number now. It changes by one, after half a second at least: up where less than a tenth was
  // waiting, down where one thread fewer would still wait for a third of the time.
  bool note(double reading_seconds, double waiting_seconds);

 private:
  int most_;
  int threads_ = 1;
  double reading_ = 0, waiting_ = 0;  // seconds since the last change, or decision for none
};

}  // namespace troupe::pipeline
