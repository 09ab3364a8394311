#pragma once

// A file to which lines are added, for the process that comes after this one. A line that is
// written outlives this process, not the machine. Only its owner can read it.

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "runtime/base/descriptor.h"
#include "runtime/base/error.h"

namespace troupe::launch {

// Any thread.
class LineFile {
 public:
  // `goes_on`: take() is called with each line that is there; else the file is emptied. A last line
  // that is not whole is cut off. kData: the file cannot be read or written.
  static runtime::Result<LineFile> open(const std::string& path, bool goes_on,
                                        const std::function<void(std::string_view line)>& take);

  // kData when it cannot be written; it is left out then, and those that follow are not.
  runtime::Result<void> add(const std::string& line);
  // It outlives the machine, too.
  runtime::Result<void> add_for_good(const std::string& line);
  // The file was removed or moved away: makes it anew at its path (runtime::put_back).
  runtime::Result<void> put_back() const;

 private:
  LineFile(std::string path, runtime::Descriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();  // of file_ and torn_
  std::string path_;
  runtime::Descriptor file_;
  bool torn_ = false;  // the file ends within a line that could not be taken back
};

}  // namespace troupe::launch
