#pragma once

// Threads, which the system may refuse to give. A thread that is made here never handles signals
// that ask the process for something: they belong to the main thread, or to the thread that waits
// for them (launch/processes/signal_watch.h).

#include <functional>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "runtime/base/error.h"

namespace troupe::runtime {

// The error text when the system gives no thread for `whom`; `why` is the system's reason.
Error no_thread(std::string_view whom, std::string_view why);

// Errors (kInternal): the system gives none; see no_thread().
Result<std::thread> start_thread(std::string_view whom, std::function<void()> work);

// Carries the text of no_thread(), for main() to report.
struct NoThread : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The same for a constructor: throws NoThread if the system gives none.
std::thread need_thread(std::string_view whom, std::function<void()> work);

}  // namespace troupe::runtime
