#include "launch/key_folder.h"

#include <sys/stat.h>

#include <filesystem>
#include <span>

#include <fmt/format.h>

namespace troupe::launch {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

std::vector<std::string> files_of(const std::string& folder) {
  return {secret_key_file(folder), public_key_file(folder), allowed_keys_file(folder)};
}

Result<void> make_folder(const std::string& folder, runtime::Disk& disk) {
  std::error_code ignored;
  const bool is_new = !std::filesystem::exists(folder, ignored);
  if (const auto made = disk.make_folder(folder); !made.ok()) {
    return Error{ErrorKind::kUsage, made.error().message};
  }
  if (is_new) ::chmod(folder.c_str(), 0700);
  for (const std::string& file : files_of(folder)) {
    if (std::filesystem::exists(file, ignored)) {
      return Error{ErrorKind::kUsage,
                   fmt::format("{} exists; keys are never overwritten, give another folder", file)};
    }
  }
  return {};
}

std::string text_of(const std::vector<runtime::AllowedKey>& allowed) {
  std::string text =
      "# Keys of the nodes that may connect, one a line: the key, a space, a name; perhaps "
      "'until'\n"
      "# and a moment.\n";
  for (const runtime::AllowedKey& key : allowed) {
    text += fmt::format("{} {}", key.key, key.name);
    if (key.until) text += fmt::format(" until {}", runtime::time_text(*key.until));
    text += '\n';
  }
  return text;
}

Result<void> write_files(const std::string& folder, const KeyFolder& keys, runtime::Disk& disk) {
  RETURN_IF_ERROR(runtime::write_secret_key(secret_key_file(folder), keys.own));
  RETURN_IF_ERROR(runtime::write_public_key(public_key_file(folder), keys.own));
  const std::string list = text_of(keys.allowed);
  const auto written = disk.replace(allowed_keys_file(folder), std::as_bytes(std::span{list}));
  if (!written.ok()) return Error{ErrorKind::kUsage, written.error().message};
  return {};
}

}  // namespace

std::string secret_key_file(const std::string& folder) { return folder + "/secret.key"; }
std::string public_key_file(const std::string& folder) { return folder + "/public.key"; }
std::string allowed_keys_file(const std::string& folder) { return folder + "/allowed.keys"; }

Result<KeyFolder> make_key_folder(const std::string& folder, const std::string& name,
                                  runtime::Disk& disk) {
  CHECK(name.find('\n') == std::string::npos, name);
  RETURN_IF_ERROR(make_folder(folder, disk));
  KeyFolder keys;
  ASSIGN_OR_RETURN(keys.own, runtime::make_keys());
  keys.allowed.push_back({keys.own.public_key, name});
  const auto written = write_files(folder, keys, disk);
  if (written.ok()) return keys;
  // None of them existed before.
  std::error_code ignored;
  for (const std::string& file : files_of(folder)) std::filesystem::remove(file, ignored);
  return written.error();
}

Result<KeyFolder> read_key_folder(const std::string& folder) {
  KeyFolder keys;
  ASSIGN_OR_RETURN(keys.own, runtime::read_secret_key(secret_key_file(folder)));
  ASSIGN_OR_RETURN(keys.allowed, runtime::read_allow_list(allowed_keys_file(folder)));
  if (keys.allowed.empty()) {
    return Error{ErrorKind::kUsage,
                 fmt::format("{} admits nobody; add the public key of each node, a line each",
                             allowed_keys_file(folder))};
  }
  return keys;
}

Result<std::vector<runtime::AllowedKey>> allowed_keys_at(const std::string& folder,
                                                         std::chrono::sys_seconds now) {
  ASSIGN_OR_RETURN(auto allowed, runtime::read_allow_list(allowed_keys_file(folder)));
  std::erase_if(allowed,
                [now](const runtime::AllowedKey& key) { return key.until && *key.until <= now; });
  return allowed;
}

Result<std::string> make_join_token(const std::string& folder, std::chrono::sys_seconds now,
                                    std::chrono::sys_seconds until, runtime::Disk& disk) {
  ASSIGN_OR_RETURN(auto allowed, allowed_keys_at(folder, now));
  ASSIGN_OR_RETURN(runtime::KeyPair keys, runtime::make_keys());
  allowed.push_back({keys.public_key, "token", until});
  const std::string list = text_of(allowed);
  const auto written = disk.replace(allowed_keys_file(folder), std::as_bytes(std::span{list}));
  if (!written.ok()) return Error{ErrorKind::kUsage, written.error().message};
  return keys.secret_key;
}

}  // namespace troupe::launch
