#pragma once

// Copies of files on servers in a folder that several processes and runs share.

#include <string>
#include <vector>

#include "pipeline/data/progress.h"
#include "pipeline/data/remote_source.h"
#include "pipeline/data/shared_file.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

struct NearCopy {
  std::string path;
  // While it is open the copy is not removed to make room.
  runtime::Descriptor held;
};

// The same address gives the same path, FOLDER/remote/SCHEME/HOST/..., so that names sort as on the
// server; names with signs that are not harmless, or that are too long, have a hash behind them.
// One process copies, the others wait for it. A copy is used again as long as the server has the
// same version of the file (ETag or time, and size), which is asked each time, or does not answer;
// of a server that tells neither, it is copied each time.
runtime::Result<NearCopy> near_copy(const RemoteSource& source, const std::string& address,
                                    const FolderBound& folder, const Progress& progress = {});

// The files of an address with the signs of patterns (*, ?, [..]; none of which is a slash), sorted
// bytewise; the address alone if there is a file of that name, or it has no such sign. Servers of
// https have no lists, so their addresses are never patterns. Errors (kData): no file matches.
runtime::Result<std::vector<std::string>> expand_address(const RemoteSource& source,
                                                         const std::string& address);

}  // namespace troupe::pipeline
