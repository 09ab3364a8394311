#pragma once

// Which hosts of a pool this run may use, beside other runs with the same hosts, such as those of
// a study. A host has a file in a folder that they share. The head that uses the host has the
// lock of the file, and the file names the journal of the run that had it last: nodes of a head
// that was killed are in that one.

#include <map>
#include <string>

#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// One thread. What it has taken is free again when it is gone, but for hosts with nodes that are
// left.
class SharedHosts {
 public:
  // `folder` is there; "": no other run is asked. `journal` of this run.
  SharedHosts(std::string folder, std::string pool, std::string journal)
      : folder_(std::move(folder)), pool_(std::move(pool)), journal_(std::move(journal)) {}

  // From now on no other run takes the host. One that this run has taken stays so. kUsage: another
  // run uses it, or has left a node there. kData: the folder cannot be used.
  runtime::Result<void> take(const std::string& host);
  // Other runs may take it. One that was not taken is no error.
  void leave(const std::string& host) { taken_.erase(host); }

 private:
  bool is_left_by(const std::string& journal, const std::string& host) const;

  const std::string folder_, pool_, journal_;
  std::map<std::string, runtime::Descriptor> taken_;  // the locked file of each
};

}  // namespace troupe::launch
