#include "pipeline/data/remote_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/data/data_error.h"
#include "pipeline/data/remote_request.h"
#include "runtime/base/descriptor.h"
#include "runtime/base/disk.h"
#include "runtime/base/new_file.h"

namespace troupe::pipeline {

using runtime::Descriptor;
using runtime::Error;
using runtime::Result;

namespace {

constexpr std::size_t kMostPutBytes = std::size_t{5} << 30;

// One copy on its way.
class Copying {
 public:
  Copying(std::string address, std::string path, std::string checksum, const CopyOptions& options,
          const Progress& progress)
      : address_(std::move(address)),
        path_(std::move(path)),
        checksum_(std::move(checksum)),
        options_(options),
        progress_(progress) {}

  Result<void> copy() {
    auto pause = options_.pause;
    int in_vain = 0;
    for (std::uint64_t before = 0;; before = written_) {
      ASSIGN_OR_RETURN(const bool done, try_once());
      if (done) return finish();
      if (written_ > before && !is_slow_) {
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
    if (version_.has_size && version_.size > written_) {
      RETURN_IF_ERROR(check_room(address_, path_, version_.size - written_));
    }
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
    is_slow_ = answer.slow;
    if (answer.again) return false;
    return data_error(fmt::format("{}: {}", shown_address(address_), failure_));
  }

  // The bytes that are there are those of two versions.
  bool changed() {
    failure_ = "the file changes while it is copied";
    is_slow_ = false;
    std::error_code ignored;
    std::filesystem::remove(note(), ignored);
    return false;
  }

  // Goes on with what is there where it is of the same version, which a server without tags cannot
  // tell.
  Result<void> open_part() {
    const auto before = read_version(note());
    const bool goes_on = before && *before == version_ && !version_.tag.empty();
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (goes_on ? 0 : O_TRUNC);
    file_ = Descriptor(::open(part().c_str(), flags, 0666));
    if (!file_.is_open()) return runtime::file_error("cannot create", part(), errno);
    const off_t end = ::lseek(file_.number(), 0, SEEK_END);
    if (end < 0) return runtime::file_error("cannot write", part(), errno);
    written_ = static_cast<std::uint64_t>(end);
    return goes_on ? Result<void>{} : write_version(note(), version_);
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
    const Result<void> placed = put_in_place(address_, path_, checksum_);
    std::error_code ignored;
    std::filesystem::remove(note(), ignored);
    return placed;
  }

  std::string address_;
  std::string path_;
  std::string checksum_;
  const CopyOptions& options_;
  const Progress& progress_;
  Descriptor file_;
  std::uint64_t written_ = 0;
  RemoteVersion version_;
  std::string failure_;
  bool is_slow_ = false;  // that is why it has failed
};

}  // namespace

RemoteAnswer WebSource::version(const std::string& address) const {
  return ask_version(address, options_);
}

Result<void> WebSource::copy(const std::string& address, const std::string& path,
                             const std::string& checksum, const Progress& progress) const {
  return Copying(address, path, checksum, options_, progress).copy();
}

Result<void> WebSource::put(const std::string& path, const std::string& address,
                            const Progress& progress) const {
  RETURN_IF_ERROR(check_address(address));
  ASSIGN_OR_RETURN(const std::string content, runtime::read_file(path, kMostPutBytes));
  std::optional<Error> ended;
  const auto goes_on = [&](std::uint64_t sent) {
    const Result<void> told = progress ? progress(sent, content.size()) : Result<void>{};
    if (!told.ok()) ended = told.error();
    return told.ok();
  };
  auto pause = options_.pause;
  bool has_folder = false;
  for (int attempt = 1; goes_on(0); ++attempt) {
    const RemoteAnswer answer = put_bytes(address, content, options_, goes_on);
    if (ended) break;
    if (answer.failure.empty()) return {};
    if (answer.folderless && !has_folder && !address.starts_with("s3://")) {
      const RemoteAnswer made = make_folder_of(address, options_);
      if (!made.failure.empty() && !answer.again) {
        return data_error(fmt::format("{}: {}, and {}; make the folder on the server",
                                      shown_address(address), answer.failure, made.failure));
      }
      has_folder = true;
      if (made.failure.empty()) continue;
    }
    if (!answer.again || attempt >= options_.attempts) {
      return data_error(fmt::format("{}: {}", shown_address(address), answer.failure));
    }
    std::this_thread::sleep_for(pause);
    pause *= 2;
  }
  return data_error(fmt::format("{}: {}", shown_address(address), ended->message));
}

Result<std::vector<std::string>> WebSource::list(const std::string& prefix) const {
  return list_bucket(prefix, options_);
}

}  // namespace troupe::pipeline
