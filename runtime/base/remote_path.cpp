#include "runtime/base/remote_path.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "runtime/base/utf8.h"

namespace troupe::runtime {

bool is_remote(std::string_view path) {
  const std::string_view scheme = path.substr(0, path.find("://"));
  return scheme.size() < path.size() && scheme.size() > 1 &&
         std::all_of(scheme.begin(), scheme.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.';
         });
}

std::string_view path_of_file(std::string_view address) {
  constexpr std::string_view kScheme = "file://";
  if (!address.starts_with(kScheme)) return {};
  const std::size_t path = address.find('/', kScheme.size());
  return path == std::string_view::npos ? std::string_view() : address.substr(path);
}

std::string remote_refused(std::string_view path) {
  if (const std::string_view file = path_of_file(path); !file.empty()) {
    return fmt::format("{}: addresses of files are not read; give the path, {}", printable(path),
                       printable(file));
  }
  return fmt::format(
      "{}: remote storage is not read; mount it or copy what is there to this machine, and give "
      "that path",
      printable(path));
}

}  // namespace troupe::runtime
