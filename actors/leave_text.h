#pragma once

namespace troupe::actors {

// Stands before the reason in the log of a member that its run lets go before the end. A study
// knows by it that people have asked a worker to leave.
inline constexpr const char* kLeavesRun = "leaves the run: ";

}  // namespace troupe::actors
