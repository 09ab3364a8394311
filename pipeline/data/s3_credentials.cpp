#include "pipeline/data/s3_credentials.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "runtime/base/disk.h"

namespace troupe::pipeline {

std::string environment(const char* name, std::string otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::move(otherwise) : value;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  return text;
}

namespace {

constexpr std::size_t kMostCredentialBytes = 1u << 20;

// Those of one section of a file such as ~/.aws/credentials.
S3Credentials credentials_in(std::string_view file, const std::string& profile) {
  S3Credentials found;
  bool here = false;
  while (!file.empty()) {
    const std::size_t end = std::min(file.find('\n'), file.size());
    const std::string_view line = trimmed(file.substr(0, end));
    file.remove_prefix(std::min(end + 1, file.size()));
    if (line.starts_with('[')) here = line == "[" + profile + "]";
    const std::size_t sign = line.find('=');
    if (!here || sign == std::string_view::npos) continue;
    const std::string_view name = trimmed(line.substr(0, sign));
    const std::string value(trimmed(line.substr(sign + 1)));
    if (name == "aws_access_key_id") found.key = value;
    if (name == "aws_secret_access_key") found.secret = value;
    if (name == "aws_session_token") found.token = value;
  }
  return found;
}

}  // namespace

S3Credentials s3_credentials() {
  S3Credentials given{environment("AWS_ACCESS_KEY_ID"), environment("AWS_SECRET_ACCESS_KEY"),
                      environment("AWS_SESSION_TOKEN")};
  if (!given.key.empty()) return given;
  const auto file = runtime::read_file(
      environment("AWS_SHARED_CREDENTIALS_FILE", environment("HOME") + "/.aws/credentials"),
      kMostCredentialBytes);
  if (!file.ok()) return {};
  return credentials_in(*file, environment("AWS_PROFILE", "default"));
}

std::string s3_region() {
  return environment("AWS_REGION", environment("AWS_DEFAULT_REGION", "us-east-1"));
}

}  // namespace troupe::pipeline
