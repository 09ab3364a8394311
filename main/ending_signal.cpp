#include "main/ending_signal.h"

#include <thread>

#include <fmt/format.h>

#include "runtime/base/clock.h"

namespace troupe {

using runtime::Error;
using runtime::ErrorKind;

runtime::Result<void> EndingSignal::check() const {
  const int number = number_;
  if (number == 0) return {};
  return Error{
      ErrorKind::kInternal,
      fmt::format("stopped by signal {}; the file that was being written is gone", number)};
}

bool EndingSignal::pause(std::chrono::milliseconds time) const {
  const auto until = runtime::steady_now() + time;
  while (number_ == 0 && runtime::steady_now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return number_ == 0;
}

int EndingSignal::code(int otherwise) const {
  const int number = number_;
  return number == 0 ? otherwise : 128 + number;
}

}  // namespace troupe
