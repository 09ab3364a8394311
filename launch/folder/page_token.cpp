#include "launch/folder/page_token.h"

#include <filesystem>

#include <fmt/format.h>

#include "runtime/base/disk.h"
#include "runtime/base/secret.h"
#include "telemetry/page/token_file.h"
#include "telemetry/page/web_access.h"

namespace troupe::launch {
namespace {

using runtime::Result;

// 128 bits.
std::string new_token() {
  return fmt::format("{:016x}{:016x}", runtime::secret_number(), runtime::secret_number());
}

}  // namespace

Result<void> write_token(const std::string& path, const std::string& token) {
  const auto written = runtime::write_new_file(path, token + "\n", 0600);
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? Result<void>{} : written;
}

Result<std::string> page_token(const config::MonitorSection& monitor, const std::string& own_file) {
  if (monitor.token) return telemetry::read_token_file(*monitor.token, "actors.monitor.token");
  if (telemetry::is_loopback_name(monitor.listen)) return std::string();
  if (own_file.empty()) return new_token();
  RETURN_IF_ERROR(write_token(own_file, new_token()));
  return telemetry::read_token_file(own_file, own_file);
}

}  // namespace troupe::launch
