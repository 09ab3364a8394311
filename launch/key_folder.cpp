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

Result<void> write_files(const std::string& folder, const KeyFolder& keys, runtime::Disk& disk) {
  RETURN_IF_ERROR(runtime::write_secret_key(secret_key_file(folder), keys.own));
  RETURN_IF_ERROR(runtime::write_public_key(public_key_file(folder), keys.own));
  const std::string list = fmt::format(
      "# Keys of the nodes that may connect, one a line: the key, a space, a name.\n{} {}\n",
      keys.allowed.front().key, keys.allowed.front().name);
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

}  // namespace troupe::launch
