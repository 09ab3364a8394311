#include "pipeline/data/near_copy.h"

#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "pipeline/data/data_error.h"
#include "runtime/base/hash.h"

namespace troupe::pipeline {

using runtime::Result;

namespace {

// A file system takes 255, and names with more behind them are made of these.
constexpr std::size_t kMostNameBytes = 160;

// A part of an address as a name, of harmless signs alone. Where it is not the part itself, or
// something hidden belongs to it, a hash of what is lost tells it from others. Images and labels
// lose the same, so that one name still follows from the other.
std::string name_of(std::string_view part, std::string_view hidden) {
  if (part.empty()) return "_";
  std::string name;
  std::string lost;
  bool whole = hidden.empty();
  for (const char c : part) {
    const auto sign = static_cast<unsigned char>(c);
    const bool harmless = std::isalnum(sign) != 0 || c == '.' || c == '-' || c == '_';
    const bool fits = name.size() < kMostNameBytes;
    whole = whole && harmless && fits;
    lost += harmless && fits ? 'a' : c;
    if (fits) name += harmless ? c : '_';
  }
  if (whole && name != "_") return name;
  return fmt::format("{}-{}", name,
                     runtime::hash_of(fmt::format("{}\n{}", lost, hidden)).text().substr(0, 16));
}

// FOLDER/remote/SCHEME/HOST/...
Result<std::string> path_in(const std::string& folder, const std::string& address) {
  std::filesystem::path path =
      std::filesystem::path(folder) / "remote" / address.substr(0, address.find("://"));
  std::string_view rest = shown_rest(address);
  const auto query = std::string_view(address).substr(
      static_cast<std::size_t>(rest.data() + rest.size() - address.data()));
  for (;;) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part == "." || part == "..") {
      return data_error(fmt::format("{}: an address with \"{}\" in it is not read",
                                    shown_address(address), part));
    }
    const bool last = slash == std::string_view::npos;
    path /= name_of(part, last ? query : "");
    if (last) return path.string();
    rest.remove_prefix(slash + 1);
  }
}

}  // namespace

Result<NearCopy> near_copy(const RemoteSource& source, const std::string& address,
                           const FolderBound& folder, const Progress& progress) {
  RETURN_IF_ERROR(check_address(address));
  ASSIGN_OR_RETURN(const std::string path, path_in(folder.folder, address));
  ASSIGN_OR_RETURN(const FileTurn turn, FileTurn::wait(path));
  const auto used = [&]() -> Result<NearCopy> {
    ASSIGN_OR_RETURN(runtime::Descriptor held, turn.use());
    return NearCopy{path, std::move(held)};
  };
  const std::string note = path + ".origin";
  // The version before the copy: where the file changes meanwhile, the next use copies again.
  const RemoteAnswer asked = source.version(address);
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    const auto before = read_version(note);
    // A server that does not answer now leaves what is here good.
    const bool told = before && *before == asked.version && !asked.version.tag.empty();
    if (asked.failure.empty() ? told : asked.again) return used();
    if (!asked.failure.empty()) {
      return data_error(fmt::format("{}: {}", shown_address(address), asked.failure));
    }
  }
  std::filesystem::remove(note, ignored);
  if (asked.version.has_size) RETURN_IF_ERROR(make_room(folder, asked.version.size));
  RETURN_IF_ERROR(source.copy(address, path, {}, progress));
  if (asked.failure.empty()) RETURN_IF_ERROR(write_version(note, asked.version));
  ASSIGN_OR_RETURN(NearCopy copy, used());
  RETURN_IF_ERROR(make_room(folder, 0));
  return copy;
}

Result<std::vector<std::string>> expand_address(const RemoteSource& source,
                                                const std::string& address) {
  // Behind a question mark root:// tells the server more than the name.
  const bool of_root = address.starts_with("root");
  const std::string query =
      of_root ? address.substr(std::min(address.find('?'), address.size())) : "";
  const std::string pattern = address.substr(0, address.size() - query.size());
  const std::size_t sign = pattern.find_first_of("*?[");
  if (sign == std::string::npos || !(of_root || address.starts_with("s3://"))) {
    return std::vector{address};
  }
  RETURN_IF_ERROR(check_address(address));
  const RemoteAnswer literal = source.version(address);
  if (!literal.missing) return std::vector{address};
  ASSIGN_OR_RETURN(std::vector<std::string> found, source.list(pattern.substr(0, sign) + query));
  std::erase_if(found, [&](const std::string& each) {
    return ::fnmatch(pattern.c_str(), each.c_str(), FNM_PATHNAME | FNM_PERIOD) != 0;
  });
  std::ranges::sort(found);
  for (std::string& each : found) each += query;
  if (!found.empty()) return found;
  return data_error(fmt::format("{}: no file on the server matches", pattern));
}

}  // namespace troupe::pipeline
