#pragma once

// Files of root:// and roots://, read and written by the programs xrdfs and xrdcp (Debian:
// xrootd-client), with the credentials that they find.

#include <string>
#include <vector>

#include "pipeline/data/remote_source.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// The programs end at last 30 s after a server has fallen silent; what the environment says of that
// (XRD_STREAMTIMEOUT and others) holds. A copy that broke off begins anew.
class XrootdSource final : public pipeline::RemoteSource {
 public:
  pipeline::RemoteAnswer version(const std::string& address) const override;
  runtime::Result<void> copy(const std::string& address, const std::string& path,
                             const std::string& checksum,
                             const pipeline::Progress& progress) const override;
  // Folders on the way are made. The server drops a file whose writer has gone away. `progress` is
  // asked before alone.
  runtime::Result<void> put(const std::string& path, const std::string& address,
                            const pipeline::Progress& progress) const override;
  // All files in the last folder of the prefix, also those that begin otherwise.
  runtime::Result<std::vector<std::string>> list(const std::string& prefix) const override;
};

// The words of `xrdfs stat` as a version; without a size where it is something else.
pipeline::RemoteVersion read_xrootd_stat(const std::string& text);

}  // namespace troupe::launch
