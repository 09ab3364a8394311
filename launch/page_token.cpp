#include "launch/page_token.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <random>
#include <sstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "telemetry/listen_address.h"
#include "telemetry/web_access.h"

namespace troupe::launch {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr std::size_t kMostBytes = 256;

Result<std::string> read_token(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string::npos || text.size() > kMostBytes) {
    return Error{
        ErrorKind::kUsage,
        fmt::format("actors.monitor.token: {} is to hold a word of 1 to {} characters, and "
                    "does not",
                    path, kMostBytes)};
  }
  const std::string word = text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
  if (word.find_first_of(kSpace) != std::string::npos) {
    return Error{ErrorKind::kUsage,
                 fmt::format("actors.monitor.token: {} holds more than one word", path)};
  }
  return word;
}

// 128 bits from the system.
std::string new_token() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", random());
  return token;
}

Result<std::string> make_token(const std::string& path) {
  const std::string token = new_token();
  const std::string line = token + "\n";
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0 && errno == EEXIST) return read_token(path);
  const bool written = descriptor >= 0 && ::write(descriptor, line.data(), line.size()) ==
                                              static_cast<ssize_t>(line.size());
  const int reason = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (written) return token;
  if (descriptor >= 0) ::unlink(path.c_str());
  return Error{ErrorKind::kData,
               fmt::format("{}: {}", path, std::generic_category().message(reason))};
}

}  // namespace

Result<std::string> page_token(const config::MonitorSection& monitor, const RunFolder& folder) {
  if (monitor.token) return read_token(*monitor.token);
  ASSIGN_OR_RETURN(const telemetry::ListenAddress address,
                   telemetry::parse_listen_address(monitor.listen));
  if (telemetry::is_loopback_name(telemetry::address_text(address))) return std::string();
  return make_token(folder.file("page.token"));
}

}  // namespace troupe::launch
