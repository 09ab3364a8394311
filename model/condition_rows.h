#pragma once

// The second input of a network: what it is told of each event (NetworkDescription::conditions).

#include <cstdint>
#include <span>

namespace troupe::model {

// Fills out (events x conditions). `values` has an array of one number per event for each
// condition, in order.
template <class T>
void write_conditions(std::span<const float* const> values, std::int64_t events, T* out) {
  for (std::int64_t event = 0; event < events; ++event) {
    for (const float* const numbers : values) *out++ = static_cast<T>(numbers[event]);
  }
}

}  // namespace troupe::model
