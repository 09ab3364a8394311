#include "launch/run/abandon.h"

#include <unistd.h>

#include <fmt/format.h>

namespace troupe::launch {

void abandon(const runtime::NodeEnd& end, const runtime::Log& log) {
  log.error(end.error->message);
  log.error(
      fmt::format("abandoned: {}; the process ends without them", fmt::join(end.abandoned, ", ")));
  ::_exit(runtime::exit_code(end.error->kind));
}

}  // namespace troupe::launch
