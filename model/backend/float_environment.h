#pragma once

// The part of a thread's floating-point state that results depend on.

namespace troupe::model {

// Sets rounding to nearest and switches flush-to-zero and denormals-are-zero off for the calling
// thread, whatever a library loaded before has left there.
void set_float_environment();

}  // namespace troupe::model
