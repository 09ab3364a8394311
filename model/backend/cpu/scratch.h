#pragma once

// Places in a kernel's scratch memory.

#include <cstddef>
#include <cstdint>

namespace troupe::model::cpu {

class ScratchPlan {
 public:
  // Bytes from the start of the scratch memory to a new array, aligned to 64.
  std::size_t add_bytes(std::size_t bytes) {
    const std::size_t place = bytes_;
    bytes_ += (bytes + 63) / 64 * 64;
    return place;
  }
  template <class T>
  std::size_t add_array(std::int64_t count) {
    return add_bytes(static_cast<std::size_t>(count) * sizeof(T));
  }
  std::size_t add_floats(std::int64_t count) { return add_array<float>(count); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

template <class T>
T* scratch_at(std::byte* scratch, std::size_t place) {
  return reinterpret_cast<T*>(scratch + place);
}
template <class T>
const T* scratch_at(const std::byte* scratch, std::size_t place) {
  return reinterpret_cast<const T*>(scratch + place);
}

}  // namespace troupe::model::cpu
