#include "launch/meeting/key_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "runtime/base/descriptor.h"
#include "runtime/base/utc_time.h"

namespace troupe::launch {
namespace {

using runtime::Descriptor;
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

std::string line_of(const runtime::AllowedKey& key) {
  const std::string until =
      key.until ? fmt::format(" until {}", runtime::utc_text(*key.until)) : std::string();
  return fmt::format("{} {}{}\n", key.key, key.name, until);
}

std::string new_list(const runtime::AllowedKey& own) {
  return fmt::format(
      "# Keys of the nodes that may connect, one a line: the key, a space, a name; perhaps "
      "'until'\n"
      "# and a moment.\n{}",
      line_of(own));
}

Result<void> write_list(const std::string& folder, const std::string& list, runtime::Disk& disk) {
  const auto written = disk.replace(allowed_keys_file(folder), std::as_bytes(std::span{list}));
  if (!written.ok()) return Error{ErrorKind::kUsage, written.error().message};
  return {};
}

// Held by whoever changes a folder's list, from before it is read until it is written.
Result<Descriptor> lock_list(const std::string& folder) {
  const std::string name = folder + "/.lock";
  Descriptor file(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  while (file.is_open()) {
    if (::flock(file.number(), LOCK_EX) == 0) return file;
    if (errno != EINTR) break;
  }
  return Error{ErrorKind::kUsage, fmt::format("{} cannot be locked, and nothing was changed: {}",
                                              name, std::generic_category().message(errno))};
}

// The key at the start of a line of a list; of other lines something that is none.
std::string_view key_in(std::string_view line) {
  constexpr std::string_view kSpaces = " \t\r";
  if (line.starts_with('#')) return {};
  line.remove_prefix(std::min(line.find_first_not_of(kSpaces), line.size()));
  return line.substr(0, line.find_first_of(kSpaces));
}

// The lines of a list as they stand, but for those of the keys that expire by `now`.
std::string without_expired(std::string_view text, const std::vector<runtime::AllowedKey>& listed,
                            std::chrono::sys_seconds now) {
  std::string kept;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const bool expired = std::any_of(listed.begin(), listed.end(), [&](const auto& key) {
      return key.key == runtime::key_of_text(key_in(line)) && key.until && *key.until <= now;
    });
    if (!expired) kept.append(line).push_back('\n');
  }
  return kept;
}

// `made` grows by every file that this call makes; who has made the first two makes the list.
Result<void> write_files(const std::string& folder, const KeyFolder& keys, runtime::Disk& disk,
                         std::vector<std::string>& made) {
  RETURN_IF_ERROR(runtime::write_secret_key(secret_key_file(folder), keys.own));
  made.push_back(secret_key_file(folder));
  RETURN_IF_ERROR(runtime::write_public_key(public_key_file(folder), keys.own));
  made.push_back(public_key_file(folder));
  made.push_back(allowed_keys_file(folder));
  return write_list(folder, new_list(keys.allowed.front()), disk);
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
  std::vector<std::string> own_files;
  const auto written = write_files(folder, keys, disk, own_files);
  if (written.ok()) return keys;
  // A file that another process has made meanwhile is that one's.
  std::error_code ignored;
  for (const std::string& file : own_files) std::filesystem::remove(file, ignored);
  return written.error();
}

Result<KeyFolder> read_key_folder(const std::string& folder) {
  KeyFolder keys;
  std::error_code unknown;
  if (std::filesystem::status(secret_key_file(folder), unknown).type() ==
      std::filesystem::file_type::not_found) {
    return Error{ErrorKind::kUsage,
                 fmt::format("there are no keys in {0}: {1} is missing; 'troupe keygen {0}' makes "
                             "them",
                             folder, secret_key_file(folder))};
  }
  ASSIGN_OR_RETURN(keys.own, runtime::read_secret_key(secret_key_file(folder)));
  ASSIGN_OR_RETURN(keys.allowed, runtime::read_allow_list(allowed_keys_file(folder)));
  if (keys.allowed.empty()) {
    return Error{ErrorKind::kUsage,
                 fmt::format("{} admits nobody; add the public key of each node, a line each",
                             allowed_keys_file(folder))};
  }
  return keys;
}

Result<std::string> make_join_token(const std::string& folder, std::chrono::sys_seconds now,
                                    std::chrono::sys_seconds until, runtime::Disk& disk) {
  ASSIGN_OR_RETURN(const Descriptor lock, lock_list(folder));
  ASSIGN_OR_RETURN(const auto listed, runtime::read_allow_list(allowed_keys_file(folder)));
  const auto text = disk.read(allowed_keys_file(folder));
  if (!text.ok()) return Error{ErrorKind::kUsage, text.error().message};
  ASSIGN_OR_RETURN(runtime::KeyPair keys, runtime::make_keys());
  const std::string_view lines(reinterpret_cast<const char*>(text->data()), text->size());
  RETURN_IF_ERROR(write_list(
      folder, without_expired(lines, listed, now) + line_of({keys.public_key, "token", until}),
      disk));
  return keys.secret_key;
}

}  // namespace troupe::launch
