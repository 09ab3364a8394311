#pragma once

// Options of the verbs that read data files which do not tell how they lie.

#include <vector>

#include "main/command.h"
#include "main/command_line.h"
#include "pipeline/data/dataset_info.h"
#include "runtime/base/error.h"

namespace troupe {

std::vector<Option> part_options();

// A command line's options of that kind. Errors: kUsage.
runtime::Result<pipeline::DescribeOptions> describe_options(const CommandLine& line);

}  // namespace troupe
