#pragma once

// From path patterns to the files of a dataset, and which of their rows belong to a split.

#include <cstddef>
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

// One of `of` parts into which a sequence is cut. They are counted from 0, the last one first.
struct Part {
  std::uint32_t of = 10;  // 0: there is none
  std::uint32_t number = 0;
};

// A part's share of so many. Parts have no item together and all items between them, and differ by
// one at most; the last one is no larger than another.
RowRange part_of(std::uint64_t all, Part part);

// Rows of a file, which is named by its index.
struct FileRows {
  std::size_t file = 0;
  RowRange rows;

  bool operator==(const FileRows&) const = default;
};

// The rows of `split`, in the order of the files. Each has one entry, which may be empty, or, where
// rows of both ends are taken, two. Files with the same name up to the first '_' (the particle, as
// in Ele_1.h5) are a group; where a group has `test.of` files or more, those of the part are for
// testing, else the part of each file's rows. `paths` are sorted; `rows` are the stored rows of
// each.
std::vector<FileRows> split_rows(std::span<const std::string> paths,
                                 std::span<const std::uint64_t> rows, DataSplit split, Part test);

}  // namespace troupe::pipeline
