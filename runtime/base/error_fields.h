#pragma once

// The fields of an Error; see runtime/base/fields.h.

#include <cstddef>

#include "runtime/base/error.h"
#include "runtime/base/fields.h"

namespace troupe::runtime {

template <class Archive>
void fields(Archive& archive, Like<Error> auto& error) {
  constexpr std::size_t kMostMessage = std::size_t{16} << 10;
  archive.choice("kind", error.kind, ErrorKind::kDiverged);
  archive.prose("message", error.message, kMostMessage);
}

inline const char* fault_of(const Error& error) {
  return static_cast<int>(error.kind) == 0 ? "an error of no kind" : nullptr;
}

}  // namespace troupe::runtime
