#pragma once

#include <string_view>

namespace troupe::actors {

// Coordinator -> Provisioner, control: training ends, and no further node is of use. Those that are
// there stay until the run is over.
struct NoMoreNodes {
  static constexpr std::string_view kName = "no-more-nodes";
};

}  // namespace troupe::actors
