#pragma once

// Results that are expected to be errors.

#include <gmock/gmock.h>

#include <string>

#include "runtime/base/error.h"

namespace troupe {

// A Result whose error is of that kind and has `part` in its message.
MATCHER_P2(FailsWith, kind, part, "fails and says \"" + std::string(part) + "\"") {
  if (arg.ok()) return false;
  *result_listener << "which says: " << arg.error().message;
  return arg.error().kind == kind && arg.error().message.find(part) != std::string::npos;
}

}  // namespace troupe
