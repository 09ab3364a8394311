#include "pipeline/data/dataset_paths.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/descriptor.h"

namespace troupe::pipeline {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

std::string particle(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return name.substr(0, name.find('_'));
}

// A pattern with its escapes undone: "run[[]1]" names the folder "run[1]".
std::string plain(const std::string& pattern) {
  std::string name;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool bracketed = i + 2 < pattern.size() && pattern[i] == '[' && pattern[i + 2] == ']' &&
                           std::string_view("*?[").find(pattern[i + 1]) != std::string_view::npos;
    if (bracketed) {
      name += pattern[i + 1];
      i += 2;
      continue;
    }
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    name += pattern[i];
  }
  return name;
}

bool is_there(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

// A path that cannot be looked at keeps its place: opening it tells why.
void remove_other_names(std::vector<std::string>& sorted) {
  std::set<std::pair<::dev_t, ::ino_t>> seen;
  std::erase_if(sorted, [&](const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return false;
    return !seen.emplace(status.st_dev, status.st_ino).second;
  });
}

}  // namespace

Result<std::vector<std::string>> expand_paths(const std::vector<std::string>& paths,
                                              const std::map<std::string, std::string>& origins) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    const bool has_pattern = path.find_first_of("*?[") != std::string::npos;
    if (!has_pattern || is_there(path)) {
      files.push_back(path);
      continue;
    }
    if (const std::string name = plain(path); is_there(name)) {
      files.push_back(name);
      continue;
    }
    glob_t found{};
    const int status = ::glob(path.c_str(), GLOB_NOSORT, nullptr, &found);
    for (std::size_t i = 0; status == 0 && i < found.gl_pathc; ++i) {
      files.emplace_back(found.gl_pathv[i]);
    }
    ::globfree(&found);
    if (status != 0) {
      // Without descriptors glob() cannot read folders, and finds nothing in them.
      if (!runtime::descriptors_left(1)) return runtime::out_of_descriptors(ErrorKind::kData, path);
      return Error{ErrorKind::kData, fmt::format("{}: no file matches the pattern", path)};
    }
  }
  if (files.empty()) return Error{ErrorKind::kData, "no data files are named"};
  std::ranges::sort(files, {}, [&](const std::string& file) {
    const auto origin = origins.find(file);
    return std::pair(origin == origins.end() ? file : origin->second, file);
  });
  files.erase(std::unique(files.begin(), files.end()), files.end());
  remove_other_names(files);
  return files;
}

RowRange part_of(std::uint64_t all, Part part) {
  if (part.of == 0) return {all, all};
  CHECK(part.number < part.of, "parts are counted from 0");
  // Where so many parts end, rounded up.
  const auto end_of = [&](std::uint64_t parts) {
    return all / part.of * parts + (all % part.of * parts + part.of - 1) / part.of;
  };
  return {end_of(part.of - part.number - 1), end_of(part.of - part.number)};
}

std::vector<FileRows> split_rows(std::span<const std::string> paths,
                                 std::span<const std::uint64_t> rows, DataSplit split, Part test) {
  CHECK(paths.size() == rows.size(), "one number of rows per file");
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < paths.size(); ++i) groups[particle(paths[i])].push_back(i);
  std::vector<RowRange> for_testing(paths.size());
  for (const auto& [name, members] : groups) {
    const bool by_file = test.of > 0 && members.size() >= test.of;
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      const std::uint64_t all = rows[members[rank]];
      const bool is_whole = by_file && part_of(members.size(), test).has(rank);
      for_testing[members[rank]] = is_whole  ? RowRange{0, all}
                                   : by_file ? RowRange{all, all}
                                             : part_of(all, test);
    }
  }
  std::vector<FileRows> parts;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto [first_test, end_test] = for_testing[i];
    if (split == DataSplit::kAll) parts.push_back({i, {0, rows[i]}});
    if (split == DataSplit::kTest) parts.push_back({i, for_testing[i]});
    if (split != DataSplit::kTrain) continue;
    const bool is_behind = end_test < rows[i];
    if (first_test > 0 || !is_behind) parts.push_back({i, {0, first_test}});
    if (is_behind) parts.push_back({i, {end_test, rows[i]}});
  }
  return parts;
}

}  // namespace troupe::pipeline
