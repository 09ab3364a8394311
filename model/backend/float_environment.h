#pragma once

// The part of a thread's floating-point state that results depend on.

namespace troupe::model {

// Sets rounding to nearest and switches flush-to-zero and denormals-are-zero off for the calling
// thread, whatever a library loaded before has left there.
void set_float_environment();

// As long as it lives, subnormal operands of the calling thread are zero and subnormal results are
// flushed to zero. On x86-64; elsewhere nothing.
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
