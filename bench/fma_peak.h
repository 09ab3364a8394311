#pragma once

// The bound of every kernel: what one core can multiply and add.

namespace troupe::bench {

// Multiply-adds of floats that this thread does in a second when nothing but registers is used, in
// the widest vectors of the host: the best of several measurements.
double fma_peak();

}  // namespace troupe::bench
