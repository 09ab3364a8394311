#pragma once

// Files on servers, brought to this machine by whatever speaks to their server.

#include <string>
#include <vector>

#include "pipeline/data/dataset_options.h"
#include "pipeline/data/remote_source.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace troupe::launch {

// The source that reads the address: libcurl, or the programs of XRootD. It lives as long as the
// program.
const pipeline::RemoteSource& source_of(const std::string& address);

// Puts copies in the cache folder (near_copy.h) in place of files on servers, and those of IDX
// labels beside images. The descriptors keep the copies there while they live.
runtime::Result<std::vector<runtime::Descriptor>> bring_near(pipeline::DatasetOptions& options,
                                                             runtime::Log& log);

}  // namespace troupe::launch
