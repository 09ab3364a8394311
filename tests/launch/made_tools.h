#pragma once

// Launchers with tools that stand in for the real ones.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "launch/pools/launchers.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace troupe::launch {

class MadeTools : public testing::Test {
 protected:
  MadeTools() {
    ::setenv("PATH", ((folder_ / "bin") + ":" + old_path_).c_str(), 1);
    std::filesystem::create_directories(folder_ / "bin");
  }
  void TearDown() override { ::setenv("PATH", old_path_.c_str(), 1); }

  // A program of that name that notes its words, a line for each call, and its input, and then does
  // what `script` says.
  void tool(const std::string& name, const std::string& script) const {
    const std::string file = folder_ / "bin/" + name;
    std::ofstream(file) << "#!/bin/sh\nprintf '[%s]' \"$@\" >>" << calls_ << "; echo >>" << calls_
                        << "; cat >>" << input_ << "\n"
                        << script << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  std::string calls() const { return read_text(calls_); }
  std::string input() const { return read_text(input_); }

  const TemporaryFolder folder_;
  const std::string old_path_ = std::getenv("PATH");
  const std::string calls_ = folder_ / "calls", input_ = folder_ / "input";
  JoinPlan plan_{"1a2b3c4d", "/opt/troupe", "tcp://10.0.0.5:8500#KEY", folder_ / "pools"};
};

}  // namespace troupe::launch
