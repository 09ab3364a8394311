#pragma once

// Threads that the system may refuse to give.

#include <functional>
#include <string_view>
#include <thread>

#include "runtime/base/error.h"

namespace troupe::runtime {

// What to say when the system gives no thread for `whom`, or no more than it has; `why` in the
// system's words.
Error no_thread(std::string_view whom, std::string_view why);

// Errors (kInternal): the system gives none; see no_thread().
Result<std::thread> start_thread(std::string_view whom, std::function<void()> work);

}  // namespace troupe::runtime
