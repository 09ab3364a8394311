#pragma once

// Files of showers event after event: TFRecord and IDX. For shower_file.cpp.

#include <string>

#include "pipeline/data/progress.h"
#include "pipeline/data/shower_file.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// As write_shower_file(), for the schema tfrecord.
runtime::Result<void> write_record_file(const ShowerFileOptions& options,
                                        const ShowerSource& source, const std::string& path,
                                        const Progress& progress);

// As write_shower_file(), for the schema idx. kUsage: a path whose name has no "images".
runtime::Result<void> write_idx_file(const ShowerFileOptions& options, const ShowerSource& source,
                                     const std::string& path, const Progress& progress);

}  // namespace troupe::pipeline
