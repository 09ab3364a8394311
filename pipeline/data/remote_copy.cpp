#include "pipeline/data/remote_copy.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/data/data_error.h"
#include "pipeline/data/remote_request.h"
#include "runtime/base/bytes.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/disk.h"
#include "runtime/base/hash.h"
#include "runtime/base/new_file.h"

namespace troupe::pipeline {

using runtime::Descriptor;
using runtime::Error;
using runtime::Result;

namespace {

constexpr std::size_t kMostNoteBytes = 4096;
// So much of a file system stays free: so much, or so small a share of a small one.
constexpr std::uint64_t kLeastFreeBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kLeastFreeShare = 20;
// A file system takes 255, and names with more behind them are made of these.
constexpr std::size_t kMostNameBytes = 160;

std::string note_of(const RemoteVersion& version) {
  return fmt::format("{}\n{}\n", version.has_size ? fmt::format("{}", version.size) : "?",
                     version.tag);
}

// Nothing where no note, or none of ours, stands at the path.
std::optional<RemoteVersion> read_note(const std::string& path) {
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

Result<void> write_note(const std::string& path, const RemoteVersion& version) {
  runtime::FileDisk disk;
  const std::string text = note_of(version);
  return disk.replace(path, std::as_bytes(std::span(text)));
}

const EVP_MD* method_of(std::string_view checksum) {
  return checksum.starts_with("md5:") ? EVP_md5() : EVP_sha256();
}

// One copy on its way.
class Copying {
 public:
  Copying(std::string address, std::string path, const CopyOptions& options,
          const Progress& progress)
      : address_(std::move(address)),
        path_(std::move(path)),
        options_(options),
        progress_(progress) {}

  Result<void> copy() {
    auto pause = options_.pause;
    int in_vain = 0;
    for (std::uint64_t before = 0;; before = written_) {
      ASSIGN_OR_RETURN(const bool done, try_once());
      if (done) return finish();
      if (written_ > before) {
        in_vain = 0;
        pause = options_.pause;
      }
      if (++in_vain >= options_.attempts) {
        return data_error(fmt::format(
            "{}: {}, {} times in a row; what has come of it is kept, and the next attempt asks for "
            "the rest",
            shown_address(address_), failure_, options_.attempts));
      }
      std::this_thread::sleep_for(pause);
      pause *= 2;
    }
  }

 private:
  std::string part() const { return path_ + ".part"; }
  std::string note() const { return path_ + ".part.origin"; }

  // False: it may be tried again, and failure_ says why.
  Result<bool> try_once() {
    const RemoteAnswer asked = ask_version(address_, options_);
    if (!asked.failure.empty()) return failed(asked);
    version_ = asked.version;
    RETURN_IF_ERROR(open_part());
    RETURN_IF_ERROR(check_room());
    std::optional<Error> error;
    const auto take = [&](std::uint64_t first, std::span<const char> bytes) {
      const Result<void> written = write(first, bytes);
      if (!written.ok()) error = written.error();
      return written.ok();
    };
    if (!version_.has_size || written_ < version_.size) {
      const RemoteAnswer got = get_rest(address_, written_, version_, options_, take);
      if (error) return *std::move(error);
      if (!got.failure.empty()) return failed(got);
      const bool other = !got.version.tag.empty() && got.version.tag != version_.tag;
      if (got.beyond || other) return changed();
    }
    if (version_.has_size && written_ != version_.size) return changed();
    return true;
  }

  Result<bool> failed(const RemoteAnswer& answer) {
    failure_ = answer.failure;
    if (answer.again) return false;
    return data_error(fmt::format("{}: {}", shown_address(address_), failure_));
  }

  // The bytes that are there are those of two versions.
  bool changed() {
    failure_ = "the file changes while it is copied";
    std::error_code ignored;
    std::filesystem::remove(note(), ignored);
    return false;
  }

  // Goes on with what is there where it is of the same version, which a server without tags cannot
  // tell.
  Result<void> open_part() {
    const auto before = read_note(note());
    const bool goes_on = before && *before == version_ && !version_.tag.empty();
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (goes_on ? 0 : O_TRUNC);
    file_ = Descriptor(::open(part().c_str(), flags, 0666));
    if (!file_.is_open()) return runtime::file_error("cannot create", part(), errno);
    const off_t end = ::lseek(file_.number(), 0, SEEK_END);
    if (end < 0) return runtime::file_error("cannot write", part(), errno);
    written_ = static_cast<std::uint64_t>(end);
    return goes_on ? Result<void>{} : write_note(note(), version_);
  }

  Result<void> check_room() const {
    std::error_code unknown;
    const auto space = std::filesystem::space(part(), unknown);
    if (unknown || !version_.has_size) return {};
    const std::uint64_t kept =
        std::min<std::uint64_t>(kLeastFreeBytes, space.capacity / kLeastFreeShare);
    if (version_.size <= written_ || version_.size - written_ + kept <= space.available) return {};
    return data_error(
        fmt::format("{}: has {:.2f} GB, and the disk of {} has {:.2f} GB free, of "
                    "which {:.2f} GB shall stay free",
                    shown_address(address_), static_cast<double>(version_.size) / 1e9, path_,
                    static_cast<double>(space.available) / 1e9, static_cast<double>(kept) / 1e9));
  }

  Result<void> write(std::uint64_t first, std::span<const char> bytes) {
    if (first != written_ && ::ftruncate(file_.number(), static_cast<off_t>(first)) != 0) {
      return runtime::file_error("cannot write", part(), errno);
    }
    written_ = first;
    while (!bytes.empty()) {
      const ssize_t done =
          ::pwrite(file_.number(), bytes.data(), bytes.size(), static_cast<off_t>(written_));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return runtime::file_error("cannot write", part(), errno);
      written_ += static_cast<std::uint64_t>(done);
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return progress_ ? progress_(written_, std::max(written_, version_.size)) : Result<void>{};
  }

  Result<void> finish() {
    if (::fsync(file_.number()) != 0) return runtime::file_error("cannot write", part(), errno);
    std::error_code cause;
    if (!options_.checksum.empty()) {
      ASSIGN_OR_RETURN(const std::string found, checksum_of(part(), options_.checksum));
      if (found != options_.checksum) {
        std::filesystem::remove(part(), cause);
        std::filesystem::remove(note(), cause);
        return data_error(fmt::format("{}: its checksum is {}; expected {}",
                                      shown_address(address_), found, options_.checksum));
      }
    }
    std::filesystem::rename(part(), path_, cause);
    if (cause) return runtime::file_error("cannot rename", part(), cause.value());
    std::filesystem::remove(note(), cause);
    return {};
  }

  std::string address_;
  std::string path_;
  const CopyOptions& options_;
  const Progress& progress_;
  Descriptor file_;
  std::uint64_t written_ = 0;
  RemoteVersion version_;
  std::string failure_;
};

// Behind "://", up to what a browser calls the query, which may hold a signature.
std::string_view without_query(std::string_view address) {
  address.remove_prefix(address.find("://") + 3);
  return address.substr(0, address.find('?'));
}

// Up to the first slash: the host, or, of s3, the bucket.
std::string_view host_of(std::string_view address) {
  const std::string_view rest = without_query(address);
  return rest.substr(0, rest.find_first_of("/#"));
}

Result<void> check_address(const std::string& address) {
  const std::string_view host = host_of(address);
  if (host.find('@') != std::string_view::npos) {
    return data_error(
        fmt::format("{}: an address with a name or a password in it is not read; they belong "
                    "in ~/.netrc, and the address is one of https",
                    shown_address(address)));
  }
  if (address.starts_with("s3://") && without_query(address).size() <= host.size() + 1) {
    return data_error(fmt::format("{}: expected s3://BUCKET/KEY", shown_address(address)));
  }
  return {};
}

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

// FOLDER/SCHEME/HOST/...
Result<std::string> path_in(const std::string& folder, const std::string& address) {
  std::filesystem::path path =
      std::filesystem::path(folder) / address.substr(0, address.find("://"));
  std::string_view rest = without_query(address);
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

// True if the file that is open is the one at the path.
bool is_at(const Descriptor& file, const std::string& path) {
  struct stat open {};
  struct stat there {};
  return ::fstat(file.number(), &open) == 0 && ::stat(path.c_str(), &there) == 0 &&
         open.st_ino == there.st_ino && open.st_dev == there.st_dev;
}

std::string lock_path(const std::string& path) { return path + ".lock"; }

// Waits until no other process has it, which may remove it in the end.
Result<Descriptor> lock_of(const std::string& path) {
  const std::string place = lock_path(path);
  for (;;) {
    Descriptor lock(::open(place.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!lock.is_open()) return runtime::file_error("cannot create", place, errno);
    while (::flock(lock.number(), LOCK_EX) != 0) {
      if (errno != EINTR) return runtime::file_error("cannot lock", place, errno);
    }
    if (is_at(lock, place)) return lock;
  }
}

}  // namespace

bool is_checksum(std::string_view text) {
  const auto is_digit = [](unsigned char c) {
    return std::isdigit(c) != 0 || (c >= 'a' && c <= 'f');
  };
  const std::size_t colon = std::min(text.find(':'), text.size() - 1);
  const std::string_view digits = text.substr(colon + 1);
  const bool known = (text.starts_with("md5:") && digits.size() == 32) ||
                     (text.starts_with("sha256:") && digits.size() == 64);
  return known && std::ranges::all_of(digits, is_digit);
}

Result<std::string> checksum_of(const std::string& path, std::string_view like) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return runtime::file_error("cannot open", path, errno);
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free);
  CHECK(context != nullptr && EVP_DigestInit_ex(context.get(), method_of(like), nullptr) == 1);
  std::vector<std::byte> piece(1u << 20);
  for (;;) {
    const ssize_t got = ::read(file.number(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return runtime::file_error("cannot read", path, errno);
    if (got == 0) break;
    EVP_DigestUpdate(context.get(), piece.data(), static_cast<std::size_t>(got));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_DigestFinal_ex(context.get(), digest.data(), &size);
  return std::string(like.substr(0, like.find(':') + 1)) +
         runtime::hex_text(std::as_bytes(std::span(digest)).first(size));
}

bool is_readable_address(std::string_view address) {
  const std::string_view schemes[] = {"https://", "http://", "s3://"};
  return std::ranges::any_of(schemes, [&](std::string_view scheme) {
    return address.starts_with(scheme) && address.size() > scheme.size();
  });
}

std::string shown_address(const std::string& address) {
  if (!is_readable_address(address)) return address;
  const std::string_view host = host_of(address);
  const std::string_view rest = without_query(address);
  const std::size_t name = host.rfind('@');
  return fmt::format("{}://{}", address.substr(0, address.find("://")),
                     rest.substr(name == std::string_view::npos ? 0 : name + 1));
}

Result<void> copy_from(const std::string& address, const std::string& path,
                       const CopyOptions& options, const Progress& progress) {
  CHECK(is_readable_address(address), shown_address(address));
  RETURN_IF_ERROR(check_address(address));
  ASSIGN_OR_RETURN(const Descriptor lock, lock_of(path));
  const Result<void> copied = Copying(address, path, options, progress).copy();
  std::error_code ignored;
  std::filesystem::remove(lock_path(path), ignored);
  return copied;
}

Result<std::string> near_copy(const std::string& address, const std::string& folder,
                              const CopyOptions& options, const Progress& progress) {
  RETURN_IF_ERROR(check_address(address));
  ASSIGN_OR_RETURN(const std::string path, path_in(folder, address));
  runtime::FileDisk disk;
  RETURN_IF_ERROR(disk.make_folder(std::filesystem::path(path).parent_path().string()));
  ASSIGN_OR_RETURN(const Descriptor lock, lock_of(path));
  const std::string note = path + ".origin";
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    const auto before = read_note(note);
    const RemoteAnswer asked = ask_version(address, options);
    // A server that does not answer now leaves what is here good.
    const bool told = before && *before == asked.version && !asked.version.tag.empty();
    const bool same = asked.failure.empty() ? told : asked.again;
    if (same) return path;
    if (!asked.failure.empty()) {
      return data_error(fmt::format("{}: {}", shown_address(address), asked.failure));
    }
  }
  std::filesystem::remove(note, ignored);
  // The version before the copy: where the file changes meanwhile, the next use copies again.
  const RemoteAnswer asked = ask_version(address, options);
  RETURN_IF_ERROR(Copying(address, path, options, progress).copy());
  if (asked.failure.empty()) RETURN_IF_ERROR(write_note(note, asked.version));
  return path;
}

}  // namespace troupe::pipeline
