#pragma once

#include <memory>
#include <string>

#include "pipeline/data/event_container.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// The datasets of an HDF5 file. Errors as Hdf5File::open().
runtime::Result<std::unique_ptr<EventContainer>> open_hdf5(const std::string& path);

}  // namespace troupe::pipeline
