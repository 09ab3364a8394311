#pragma once

// The word that a browser beyond this machine has to give before it sees a run.

#include <string>

#include "config/topology.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// What the topology's file has, without the white space around it; else, for a page that is reached
// from other machines, that of `own_file`, which is made for its owner's eyes alone where there is
// none ("": a new one, which is written nowhere); else "". kUsage: a file that cannot be read, is
// empty, or longer than any token; kData: one that cannot be made.
runtime::Result<std::string> page_token(const config::MonitorSection& monitor,
                                        const std::string& own_file);

// For its owner's eyes alone; a file that is there stays. kData: it cannot be written.
runtime::Result<void> write_token(const std::string& path, const std::string& token);

}  // namespace troupe::launch
