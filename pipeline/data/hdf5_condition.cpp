#include "pipeline/data/hdf5_condition.h"

#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace troupe::pipeline {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

constexpr std::array<unsigned char, 8> kSignature{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
// A superblock with addresses of 8 bytes has 100 at most.
constexpr std::size_t kSuperblockBytes = 128;
// The place of its first address, by version.
constexpr std::array<std::size_t, 4> kFirstAddress{24, 28, 12, 12};
// The end of the file is the third of its addresses.
constexpr std::size_t kAddressesBefore = 2;

unsigned byte_at(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<unsigned>(bytes[at]);
}

bool has_signature(std::span<const std::byte> bytes) {
  return bytes.size() >= kSignature.size() &&
         std::equal(kSignature.begin(), kSignature.end(), bytes.begin(),
                    [](unsigned char a, std::byte b) { return std::byte{a} == b; });
}

std::vector<std::byte> bytes_at(std::FILE* file, std::uint64_t offset) {
  std::vector<std::byte> bytes(kSuperblockBytes);
  if (::fseeko(file, static_cast<off_t>(offset), SEEK_SET) != 0) return {};
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  return bytes;
}

// The bytes from the signature on, which stands at the start of the file or behind a user block;
// empty if there is none.
std::vector<std::byte> find_superblock(std::FILE* file, std::uint64_t file_bytes) {
  for (std::uint64_t at = 0; at < file_bytes; at = at == 0 ? 512 : 2 * at) {
    auto bytes = bytes_at(file, at);
    if (has_signature(bytes)) return bytes;
  }
  return {};
}

// The library locks a file that it writes against everyone, and a file that it reads against
// writers, unless told not to. Returns 0 if this process gets the lock for reading, else the errno
// that says why not.
int lock_error(std::FILE* file) {
  const char* const told = std::getenv("HDF5_USE_FILE_LOCKING");
  if (told != nullptr && (told == std::string_view("FALSE") || told == std::string_view("0"))) {
    return 0;
  }
  return ::flock(::fileno(file), LOCK_SH | LOCK_NB) == 0 ? 0 : errno;
}

// "" if the superblock does not tell.
std::string why_not_whole(const Hdf5Superblock& superblock, const std::string& path,
                          std::uint64_t bytes) {
  if (superblock.being_written) {
    return fmt::format(
        "is open in another program, or was not closed by the one that wrote it; if none has it "
        "open any more: h5clear -s {}",
        path);
  }
  if (superblock.end_of_file > bytes) {
    return fmt::format(
        "has {} of the {} bytes it needs: it is cut short, or not closed by the program that "
        "writes it",
        bytes, superblock.end_of_file);
  }
  return {};
}

}  // namespace

std::optional<Hdf5Superblock> read_superblock(std::span<const std::byte> bytes) {
  constexpr std::size_t kVersion = 8;
  if (!has_signature(bytes) || bytes.size() <= kVersion + 5) return std::nullopt;
  const unsigned version = byte_at(bytes, kVersion);
  if (version >= kFirstAddress.size()) return std::nullopt;
  const std::size_t width = byte_at(bytes, version < 2 ? kVersion + 5 : kVersion + 1);
  const std::size_t end = kFirstAddress[version] + kAddressesBefore * width;
  if (width < 1 || width > 8 || bytes.size() < end + width) return std::nullopt;
  Hdf5Superblock found;
  found.being_written = version >= 3 && byte_at(bytes, kVersion + 3) != 0;
  for (std::size_t i = width; i > 0; --i) {
    found.end_of_file = found.end_of_file << 8 | byte_at(bytes, end + i - 1);
  }
  return found;
}

std::string why_not_opened(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (!file) return "cannot be opened: " + std::generic_category().message(errno);
  std::error_code unknown;
  const std::uint64_t bytes = std::filesystem::file_size(path, unknown);
  if (unknown) return {};
  const auto begin = find_superblock(file.get(), bytes);
  if (begin.empty() && bytes > 0) return {};
  // The lock comes before the content, which may be anything until the program that writes it has
  // closed the file.
  const int unlocked = lock_error(file.get());
  if (unlocked == EWOULDBLOCK) {
    return "is open in another program, which writes it; wait until it is closed there";
  }
  if (bytes == 0) return "is empty: its writer has not closed it, or was stopped";
  if (const auto superblock = read_superblock(begin)) {
    if (std::string why = why_not_whole(*superblock, path, bytes); !why.empty()) return why;
  }
  if (unlocked == 0) return {};
  return fmt::format(
      "cannot be locked ({}), which the HDF5 library wants; if nobody writes it, set "
      "HDF5_USE_FILE_LOCKING=FALSE",
      std::generic_category().message(unlocked));
}

}  // namespace troupe::pipeline
