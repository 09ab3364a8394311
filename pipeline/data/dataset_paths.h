#pragma once

// From path patterns to the files of a dataset, and which of their rows belong to a split.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "pipeline/data/dataset_options.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// Patterns (*, ?, [..]) expanded, sorted bytewise. If one file has several names, as by links, the
// first is kept, so that its events come once. Errors (kData): no paths, a pattern without match. A
// path without pattern is taken as it is. So is a path with pattern signs that names a file as it
// stands, or once its escapes ([*], [?], [[] and \\) are undone.
// `origins`: as DatasetOptions::origins.
runtime::Result<std::vector<std::string>> expand_paths(
    const std::vector<std::string>& paths, const std::map<std::string, std::string>& origins = {});

// Rows [first, end) of a file.
struct RowRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;

  bool has(std::uint64_t row) const { return row >= first && row < end; }
  bool operator==(const RowRange&) const = default;
};

// For every file the rows of `split`. Files with the same name up to the first '_' (the particle,
// as in Ele_1.h5) are a group; where a group has `test_one_in` files or more, its last floor(files
// / test_one_in) are for testing, else the last floor(rows / test_one_in) of each file. `paths` are
// sorted; `rows` are the stored rows of each.
std::vector<RowRange> split_rows(std::span<const std::string> paths,
                                 std::span<const std::uint64_t> rows, DataSplit split,
                                 std::uint32_t test_one_in);

}  // namespace troupe::pipeline
