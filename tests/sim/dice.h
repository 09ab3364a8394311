#pragma once

// Where everything random in a simulated run comes from: one seed, one order of throws.

#include <cstdint>

#include "runtime/base/clock.h"
#include "runtime/base/random.h"

namespace troupe::sim {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t next() { return runtime::mix64(seed_ ^ runtime::mix64(++thrown_)); }
  // 0 .. sides - 1; the bias of the remainder matters to nobody here.
  std::uint64_t below(std::uint64_t sides) { return next() % sides; }
  bool one_in(std::uint64_t sides) { return below(sides) == 0; }
  runtime::Duration between(runtime::Duration least, runtime::Duration most) {
    const auto span = static_cast<std::uint64_t>((most - least).count()) + 1;
    return least + runtime::Duration(static_cast<std::int64_t>(below(span)));
  }

 private:
  std::uint64_t seed_;
  std::uint64_t thrown_ = 0;
};

}  // namespace troupe::sim
