#pragma once

// How many micro-batches are read ahead for a replica, by whether they were used up. Reading that
// is fast enough as a whole can still come in bursts, as where one block holds the events of
// several micro-batches. What was read ahead bridges them. Pure; one thread.

#include <cstdint>

namespace troupe::pipeline {

class ReadAhead {
 public:
  static constexpr std::int64_t kLeast = 4;
  // What lies ready for one replica at most, unless `kLeast` micro-batches are larger.
  static constexpr std::int64_t kMostBytes = std::int64_t{32} << 20;
  static constexpr std::int64_t kMost = 64;

  // The most micro-batches of so many bytes that are read ahead.
  static std::int64_t most(std::int64_t bytes);

  // Begins with the least, and stays within `most`, which is no less.
  explicit ReadAhead(std::int64_t most) : most_(most) {}

  std::int64_t micro_batches() const { return micro_batches_; }
  // All that may be read ahead lies ready.
  void note_full() { was_full_ = true; }
  // All that had been read ahead was used up during one reading. True: micro_batches() has grown,
  // to twice as many where there is room for them, because it had been full before. Where it had
  // not, reading is too slow as a whole, and more of it ahead would be no help.
  bool note_used_up();

 private:
  std::int64_t most_;
  std::int64_t micro_batches_ = kLeast;
  bool was_full_ = false;  // since it was used up
};

}  // namespace troupe::pipeline
