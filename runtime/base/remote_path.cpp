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

std::string remote_refused(std::string_view path) {
  return fmt::format(
      "{}: remote storage is not read; mount it or copy what is there to this machine, and give "
      "that path",
      printable(path));
}

}  // namespace troupe::runtime
