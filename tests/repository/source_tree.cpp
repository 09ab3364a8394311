#include "tests/repository/source_tree.h"

#include <algorithm>
#include <fstream>

namespace troupe::repository {
namespace {

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace

std::filesystem::path root() { return TROUPE_SOURCE_DIR; }

std::vector<SourceFile> read_sources(const std::vector<std::string>& folders,
                                     const std::vector<std::string>& extensions) {
  std::vector<SourceFile> sources;
  for (const std::string& folder : folders) {
    if (!std::filesystem::is_directory(root() / folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root() / folder)) {
      const std::string extension = entry.path().extension().string();
      if (!entry.is_regular_file() || std::ranges::find(extensions, extension) == extensions.end())
        continue;
      const std::string path = entry.path().lexically_relative(root()).generic_string();
      sources.push_back({path, read_lines(entry.path())});
    }
  }
  std::ranges::sort(sources, {}, &SourceFile::path);
  return sources;
}

}  // namespace troupe::repository
