#include "pipeline/data/remote_source.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <span>
#include <system_error>

#include <fmt/format.h>

#include "pipeline/data/checksum.h"
#include "pipeline/data/data_error.h"
#include "pipeline/data/shared_file.h"
#include "runtime/base/disk.h"
#include "runtime/base/new_file.h"

namespace troupe::pipeline {

using runtime::Result;

namespace {

// So much of a file system stays free: so much, or so small a share of a small one.
constexpr std::uint64_t kLeastFreeBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kLeastFreeShare = 20;
constexpr std::size_t kMostNoteBytes = 4096;

// Up to the first slash: the host, or, of s3, the bucket.
std::string_view host_of(std::string_view address) {
  const std::string_view rest = shown_rest(address);
  return rest.substr(0, rest.find_first_of("/#"));
}

}  // namespace

// Behind "://", up to what a browser calls the query, which may hold a signature.
std::string_view shown_rest(std::string_view address) {
  address.remove_prefix(address.find("://") + 3);
  return address.substr(0, address.find('?'));
}

bool is_readable_address(std::string_view address) {
  const std::string_view schemes[] = {"https://", "http://", "s3://", "root://", "roots://"};
  return std::ranges::any_of(schemes, [&](std::string_view scheme) {
    return address.starts_with(scheme) && address.size() > scheme.size();
  });
}

std::string shown_address(const std::string& address) {
  if (!is_readable_address(address)) return address;
  const std::string_view host = host_of(address);
  const std::string_view rest = shown_rest(address);
  const std::size_t name = host.rfind('@');
  return fmt::format("{}://{}", address.substr(0, address.find("://")),
                     rest.substr(name == std::string_view::npos ? 0 : name + 1));
}

Result<void> check_address(const std::string& address) {
  const std::string_view host = host_of(address);
  // Names of users without passwords are usual with root://.
  const bool of_root = address.starts_with("root");
  const std::size_t secret = host.find(of_root ? ':' : '@');
  const std::size_t name = host.find('@');
  if (name != std::string_view::npos && secret != std::string_view::npos && secret <= name) {
    return data_error(
        fmt::format("{}: an address with a name or a password in it is not read; they belong "
                    "in ~/.netrc, and the address is one of https",
                    shown_address(address)));
  }
  const std::string_view path = shown_rest(address).substr(host.size());
  if (address.starts_with("s3://") && path.size() <= 1) {
    return data_error(fmt::format("{}: expected s3://BUCKET/KEY", shown_address(address)));
  }
  if (of_root && path.size() <= 1) {
    return data_error(fmt::format("{}: expected root://HOST//PATH", shown_address(address)));
  }
  return {};
}

Result<void> check_room(const std::string& address, const std::string& path, std::uint64_t bytes) {
  std::error_code unknown;
  const auto folder = std::filesystem::absolute(path, unknown).parent_path();
  const auto space = std::filesystem::space(folder, unknown);
  if (unknown) return {};
  const std::uint64_t kept =
      std::min<std::uint64_t>(kLeastFreeBytes, space.capacity / kLeastFreeShare);
  if (bytes + kept <= space.available) return {};
  return data_error(
      fmt::format("{}: has {:.2f} GB to copy, and the disk of {} has {:.2f} GB free, of "
                  "which {:.2f} GB shall stay free",
                  shown_address(address), static_cast<double>(bytes) / 1e9, path,
                  static_cast<double>(space.available) / 1e9, static_cast<double>(kept) / 1e9));
}

Result<void> put_in_place(const std::string& address, const std::string& path,
                          const std::string& checksum) {
  const std::string part = path + ".part";
  std::error_code cause;
  if (!checksum.empty()) {
    ASSIGN_OR_RETURN(const std::string found, checksum_of(part, checksum));
    if (found != checksum) {
      std::filesystem::remove(part, cause);
      return data_error(fmt::format("{}: its checksum is {}; expected {}", shown_address(address),
                                    found, checksum));
    }
  }
  std::filesystem::rename(part, path, cause);
  if (cause) return runtime::file_error("cannot rename", part, cause.value());
  return {};
}

std::optional<RemoteVersion> read_version(const std::string& path) {
  const auto text = runtime::read_file(path, kMostNoteBytes);
  if (!text.ok()) return std::nullopt;
  const std::size_t line = text->find('\n');
  if (line == std::string::npos || !text->ends_with('\n')) return std::nullopt;
  RemoteVersion version;
  const auto read = std::from_chars(text->data(), text->data() + line, version.size);
  version.has_size = read.ec == std::errc();
  version.tag = text->substr(line + 1, text->size() - line - 2);
  return version;
}

Result<void> write_version(const std::string& path, const RemoteVersion& version) {
  runtime::FileDisk disk;
  const std::string text = fmt::format(
      "{}\n{}\n", version.has_size ? fmt::format("{}", version.size) : "?", version.tag);
  return disk.replace(path, std::as_bytes(std::span(text)));
}

Result<void> copy_from(const RemoteSource& source, const std::string& address,
                       const std::string& path, const std::string& checksum,
                       const Progress& progress) {
  RETURN_IF_ERROR(check_address(address));
  ASSIGN_OR_RETURN(const FileTurn turn, FileTurn::wait(path));
  const Result<void> copied = source.copy(address, path, checksum, progress);
  turn.forget();
  return copied;
}

}  // namespace troupe::pipeline
