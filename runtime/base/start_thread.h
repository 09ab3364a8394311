#pragma once

// Threads, which the system may refuse to give. Signals that ask a process for something are never
// handled by one that is made here: they belong to the main thread, or to who waits for them
// (launch/processes/signal_watch.h).

#include <functional>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "runtime/base/error.h"

namespace troupe::runtime {

// What to say when the system gives no thread for `whom`, or no more than it has; `why` in the
// system's words.
Error no_thread(std::string_view whom, std::string_view why);

// Errors (kInternal): the system gives none; see no_thread().
Result<std::thread> start_thread(std::string_view whom, std::function<void()> work);

// Says what no_thread() says, for main() to report.
struct NoThread : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The same for a constructor: throws NoThread where the system gives none.
std::thread need_thread(std::string_view whom, std::function<void()> work);

}  // namespace troupe::runtime
