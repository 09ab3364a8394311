#include "launch/page_token.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <system_error>

#include <fmt/format.h>

#include "telemetry/page/listen_address.h"
#include "telemetry/page/token_file.h"
#include "telemetry/page/web_access.h"

namespace troupe::launch {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

// 128 bits from the system.
std::string new_token() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", random());
  return token;
}

}  // namespace

Result<void> write_token(const std::string& path, const std::string& token) {
  const std::string line = token + "\n";
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0 && errno == EEXIST) return {};
  const bool written = descriptor >= 0 && ::write(descriptor, line.data(), line.size()) ==
                                              static_cast<ssize_t>(line.size());
  const int reason = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (written) return {};
  if (descriptor >= 0) ::unlink(path.c_str());
  return Error{ErrorKind::kData,
               fmt::format("{}: {}", path, std::generic_category().message(reason))};
}

Result<std::string> page_token(const config::MonitorSection& monitor, const std::string& own_file) {
  if (monitor.token) return telemetry::read_token_file(*monitor.token, "actors.monitor.token");
  ASSIGN_OR_RETURN(const telemetry::ListenAddress address,
                   telemetry::parse_listen_address(monitor.listen));
  if (telemetry::is_loopback_name(telemetry::address_text(address))) return std::string();
  if (own_file.empty()) return new_token();
  RETURN_IF_ERROR(write_token(own_file, new_token()));
  return telemetry::read_token_file(own_file, own_file);
}

}  // namespace troupe::launch
