#include "runtime/base/start_thread.h"

#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace troupe::runtime {

Error no_thread(std::string_view whom, std::string_view why) {
  return {ErrorKind::kInternal,
          fmt::format("the system gives no thread for {}: {}; it may have more with 'ulimit -u' "
                      "(threads of this user) or 'ulimit -v' (address space)",
                      whom, why)};
}

Result<std::thread> start_thread(std::string_view whom, std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    return no_thread(whom, error.code().message());
  }
}

}  // namespace troupe::runtime
