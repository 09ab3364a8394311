#pragma once

// A file that only grows, record by record, on a disk that may be full for a while. Bytes that
// cannot be written wait in memory, and writing goes on at the very byte where it stopped. So the
// file is at any time the beginning of what it is to hold.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/descriptor.h"
#include "runtime/base/disk.h"
#include "runtime/base/error.h"

namespace troupe::telemetry {

struct AppendFileOptions {
  std::string path;
  bool fresh = true;  // refuse a file that is there already; false: go on behind its end
  // Bytes that may wait in memory. Records that find no room are given up.
  std::size_t limit = 8u << 20;
};

// One thread at a time. Never throws; waits for nothing but the system's write().
class AppendFile {
 public:
  // kData: it cannot be opened; the message names path and cause.
  static runtime::Result<AppendFile> open(AppendFileOptions options);
  AppendFile(AppendFile&&) = default;
  AppendFile& operator=(AppendFile&&) = delete;
  ~AppendFile();  // tries once more to write what waits

  // Takes the record whole, or gives it up and counts it. Writes when many bytes wait.
  void add(std::string_view record);

  // Writes what waits, or as much of it as there is room for. kData: that failed. A failure is
  // reported once, however long it lasts.
  runtime::Result<void> flush();

  const std::string& path() const { return options_.path; }
  // How many records were given up.
  std::uint64_t dropped() const { return dropped_; }
  // Whether its name was removed, so that nobody can read it any more.
  bool vanished() const;
  // Makes it anew at its path, with all that it holds; see runtime::put_back.
  runtime::Result<void> put_back() const {
    return runtime::put_back(file_.number(), options_.path);
  }

 private:
  AppendFile(AppendFileOptions options, runtime::Descriptor file)
      : options_(std::move(options)), file_(std::move(file)) {}
  int write_what_waits();

  AppendFileOptions options_;
  runtime::Descriptor file_;
  std::string waiting_;
  int failure_ = 0;   // errno of the last write; 0: it went well
  int reported_ = 0;  // the failure that the owner knows of
  std::uint64_t dropped_ = 0;
};

}  // namespace troupe::telemetry
