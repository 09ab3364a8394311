#include "pipeline/data/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "pipeline/data/data_error.h"
#include "runtime/base/new_file.h"

namespace troupe::pipeline {

using runtime::Descriptor;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

namespace {

constexpr std::size_t kPieceBytes = 1u << 18;
// gzip or zlib by the header, and the largest window.
constexpr int kGzipOnly = 16 + MAX_WBITS;

// Reads as much as there is, up to out.size(). -1: errno says why not.
ssize_t read_at(const Descriptor& file, std::uint64_t offset, std::span<std::byte> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::pread(file.number(), out.data() + done, out.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

// The content of a gzip file, piece by piece. A file of several members is their content in order.
class Gunzip {
 public:
  explicit Gunzip(const Descriptor& file) : file_(file) {
    CHECK(inflateInit2(&stream_, kGzipOnly) == Z_OK, "out of memory");
  }
  ~Gunzip() { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  // Fills `out` as far as the content goes; fewer bytes: it ends there. An Error says what is wrong
  // with it, without the file's name.
  Result<std::size_t> next(std::span<std::byte> out) {
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    while (stream_.avail_out > 0 && !ended_) RETURN_IF_ERROR(advance());
    return out.size() - stream_.avail_out;
  }

 private:
  Result<void> advance() {
    if (stream_.avail_in == 0) RETURN_IF_ERROR(refill());
    if (stream_.avail_in == 0) {
      ended_ = between_;
      return ended_ ? Result<void>{} : data_error("its gzip data are cut short");
    }
    if (between_ && inflateReset(&stream_) != Z_OK) return data_error("its gzip data are damaged");
    between_ = false;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      between_ = true;
      return {};
    }
    if (status == Z_OK || status == Z_BUF_ERROR) return {};
    return data_error("its gzip data are damaged");
  }

  Result<void> refill() {
    const ssize_t got = read_at(file_, offset_, packed_);
    if (got < 0) return data_error("it cannot be read");
    offset_ += static_cast<std::uint64_t>(got);
    stream_.next_in = reinterpret_cast<Bytef*>(packed_.data());
    stream_.avail_in = static_cast<uInt>(got);
    return {};
  }

  const Descriptor& file_;
  z_stream stream_{};
  std::uint64_t offset_ = 0;
  bool between_ = false;  // members: one has ended
  bool ended_ = false;
  std::array<std::byte, 1u << 16> packed_;
};

Result<Descriptor> open_file(const std::string& path, std::uint64_t& size) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.number(), &status) != 0) {
    const int cause = errno;
    if (runtime::is_out_of_descriptors(cause)) {
      return runtime::out_of_descriptors(ErrorKind::kData, path);
    }
    return runtime::file_error("cannot open", path, cause);
  }
  if (!S_ISREG(status.st_mode)) return data_error(path + ": not a regular file");
  size = static_cast<std::uint64_t>(status.st_size);
  return file;
}

}  // namespace

bool is_gzip(std::span<const std::byte> head) {
  return head.size() >= 3 && head[0] == std::byte{0x1f} && head[1] == std::byte{0x8b} &&
         head[2] == std::byte{8};
}

Result<FileBytes> FileBytes::open(const std::string& path, const Claim& claim, std::uint64_t most) {
  FileBytes bytes;
  bytes.path_ = path;
  ASSIGN_OR_RETURN(bytes.file_, open_file(path, bytes.size_));
  std::array<std::byte, 3> head{};
  if (read_at(bytes.file_, 0, head) == 3 && is_gzip(head)) {
    try {
      const Result<void> unpacked = bytes.unpack(claim, most);
      if (!unpacked.ok()) return data_error(path + ": " + unpacked.error().message);
    } catch (const std::bad_alloc&) {
      return data_error(path + ": unpacks to more than there is memory for; unpack it with gunzip");
    }
  }
  return bytes;
}

Result<void> FileBytes::unpack(const Claim& claim, std::uint64_t ceiling) {
  const auto too_large = [&] {
    return data_error(
        fmt::format("unpacks to more than {:.1f} MB, which is the most; unpack it with gunzip",
                    static_cast<double>(ceiling) / 1e6));
  };
  Gunzip gzip(file_);
  std::uint64_t most = 0;  // 0: no bound
  std::size_t piece = kHead;
  for (;;) {
    const std::size_t before = memory_.size();
    memory_.resize(before + piece);
    ASSIGN_OR_RETURN(const std::size_t got, gzip.next(std::span(memory_).subspan(before)));
    memory_.resize(before + got);
    if (memory_.size() > ceiling) return too_large();
    if (got < piece) break;
    if (before == 0 && claim) most = claim(memory_);
    if (most > ceiling) return too_large();
    if (most > 0 && memory_.size() > most) break;
    piece = kPieceBytes;
    if (most > 0) piece = std::min<std::uint64_t>(piece, most + 1 - memory_.size());
  }
  memory_.shrink_to_fit();
  size_ = memory_.size();
  unpacked_ = true;
  file_.close();
  return {};
}

Result<void> FileBytes::read(std::uint64_t offset, std::span<std::byte> out) const {
  CHECK(offset <= size_ && out.size() <= size_ - offset, "beyond the file");
  if (unpacked_) {
    if (!out.empty()) std::memcpy(out.data(), memory_.data() + offset, out.size());
    return {};
  }
  const ssize_t got = read_at(file_, offset, out);
  if (got < 0) return runtime::file_error("cannot read", path_, errno);
  if (static_cast<std::size_t>(got) == out.size()) return {};
  return data_error(path_ + ": has become shorter while it was read");
}

std::vector<std::byte> head_of(const std::string& path) {
  std::uint64_t size = 0;
  const auto file = open_file(path, size);
  if (!file.ok()) return {};
  std::vector<std::byte> head(FileBytes::kHead);
  const ssize_t got = read_at(*file, 0, head);
  head.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  if (!is_gzip(head)) return head;
  Gunzip gzip(*file);
  head.resize(FileBytes::kHead);
  const auto unpacked = gzip.next(head);
  head.resize(unpacked.ok() ? *unpacked : 0);
  return head;
}

}  // namespace troupe::pipeline
