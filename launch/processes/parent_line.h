#pragma once

// A child's side of the line on which its parent tells it what the child cannot see itself (see
// child_process.h).

#include <functional>
#include <string>
#include <thread>

#include "runtime/base/descriptor.h"

namespace troupe::launch {

class ParentLine {
 public:
  // Takes over `descriptor` and hands each line that comes, without its line break, to `on_line`,
  // on a thread of its own, until the line ends or this object does. A descriptor that is none ends
  // at once.
  ParentLine(int descriptor, std::function<void(const std::string& line)> on_line);
  // Stops; waits for a call that runs.
  ~ParentLine();
  ParentLine(const ParentLine&) = delete;
  ParentLine& operator=(const ParentLine&) = delete;

 private:
  runtime::Descriptor line_;
  runtime::Descriptor stop_;  // an eventfd
  std::thread thread_;
};

}  // namespace troupe::launch
