#pragma once

#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace troupe::pipeline {

inline runtime::Error data_error(std::string message) {
  return {runtime::ErrorKind::kData, std::move(message)};
}

}  // namespace troupe::pipeline
