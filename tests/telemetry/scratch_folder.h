#pragma once

// A folder that goes with the test, and what is in its files.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/temporary_folder.h"

namespace troupe::telemetry {

class ScratchFolder {
 public:
  const std::filesystem::path& path() const { return path_; }

 private:
  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path();
};

inline std::string read_file(const std::filesystem::path& path) {
  EXPECT_TRUE(std::filesystem::exists(path)) << path;
  return read_text(path);
}

}  // namespace troupe::telemetry
