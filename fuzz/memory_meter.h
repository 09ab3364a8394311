#pragma once

// How much memory an input costs, whoever asks for it: our code or a library behind it. It
// counts through clang's address sanitizer, and sees nothing where a program is built without that.

#include <cstddef>

namespace troupe::fuzz {

// From its construction on; one at a time. Any thread's allocations count.
class MemoryMeter {
 public:
  MemoryMeter();
  ~MemoryMeter();
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;

  // The most bytes that were allocated since, and not yet freed, at any one time.
  std::size_t peak() const;

  // Ends the process, which libFuzzer takes for a crash, when the peak was more than four times
  // `input_bytes` beyond `constant_bytes`, what the smallest input costs.
  void check(std::size_t input_bytes, std::size_t constant_bytes) const;
};

}  // namespace troupe::fuzz
