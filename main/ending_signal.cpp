#include "main/ending_signal.h"

#include <fmt/format.h>

#include "main/answer.h"

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

int EndingSignal::report_end(const Error& error) const {
  const int code = report(error);
  const int number = number_;
  return number == 0 ? code : 128 + number;
}

}  // namespace troupe
