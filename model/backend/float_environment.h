#pragma once

// The part of a thread's floating-point state that results depend on.

namespace troupe::model {

// Sets rounding to nearest and switches flush-to-zero and denormals-are-zero off for the calling
// thread. A library that was loaded before may have left other settings.
void set_float_environment();

// While it lives, subnormal operands of the calling thread count as zero and subnormal results
// become zero. It does this on x86-64 and nothing elsewhere.
class FlushedSubnormals {
 public:
  FlushedSubnormals();
  ~FlushedSubnormals();
  FlushedSubnormals(const FlushedSubnormals&) = delete;
  FlushedSubnormals& operator=(const FlushedSubnormals&) = delete;

 private:
  unsigned before_ = 0;
};

}  // namespace troupe::model
