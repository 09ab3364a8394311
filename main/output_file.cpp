#include "main/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace troupe {

runtime::Result<void> check_output_file(const std::string& path, bool replaced) {
  const auto refuse = [&](const std::string& cause) {
    return runtime::Error{runtime::ErrorKind::kData,
                          fmt::format("cannot write {}: {}", path, cause)};
  };
  const std::filesystem::path file(path);
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (::access((folder / ".").c_str(), W_OK | X_OK) != 0) {
    return refuse(std::generic_category().message(errno));
  }
  std::error_code ignored;
  if (!file.has_filename() || std::filesystem::is_directory(file, ignored)) {
    return refuse("it is a folder; name a file");
  }
  if (!std::filesystem::exists(file, ignored)) return {};
  // Devices and pipes would be replaced by a file.
  if (!std::filesystem::is_regular_file(file, ignored)) {
    return refuse("it is there and is no file; name another");
  }
  if (replaced) return {};
  return runtime::Error{
      runtime::ErrorKind::kUsage,
      fmt::format("{} is there already; name another file, or replace it with --force", path)};
}

}  // namespace troupe
