#pragma once

// The log of a run: standard error, RUN/log.txt, and what a page shows of it.

#include <memory>

#include "launch/run_folder.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "telemetry/history.h"

namespace troupe::launch {

// kData: the file cannot be opened.
runtime::Result<runtime::Log> open_run_log(const RunFolder& folder,
                                           std::shared_ptr<telemetry::History> history);

}  // namespace troupe::launch
