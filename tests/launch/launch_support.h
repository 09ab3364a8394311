#pragma once

// Helpers of the tests of processes.

#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launch/processes/child_process.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace troupe::launch {

// Whether the process runs no more. One that nobody has waited for yet counts as gone: it has no
// memory and runs no instruction.
inline bool is_gone(pid_t pid) {
  const std::string stat = read_text("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = stat.rfind(") ");
  return name_end == std::string::npos || stat[name_end + 2] == 'Z' || stat[name_end + 2] == 'X';
}

// A child whose lines, of both streams, are kept.
class Talker {
 public:
  // `input`: what it finds on its standard input.
  explicit Talker(std::vector<std::string> words, std::string input = {}) {
    const auto keep = [this](std::string_view line) { lines.emplace_back(line); };
    auto started = ChildProcess::start({std::move(words), keep, keep, std::move(input)});
    EXPECT_TRUE(started.ok()) << (started.ok() ? "" : started.error().message);
    if (started.ok()) child_.push_back(std::move(started).value());
  }

  ChildProcess& child() { return *child_.front(); }

  // Reads until a line contains `part`; that line, or "" (a failure) when the child ends without.
  std::string line_with(const std::string& part) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t seen = 0;;) {
      for (; seen < lines.size(); ++seen) {
        if (lines[seen].find(part) != std::string::npos) return lines[seen];
      }
      const bool hangs = std::chrono::steady_clock::now() - begin > kHang;
      if (hangs || child().end()) break;
      wait_for_children(child_, -1, kHang);
    }
    ADD_FAILURE() << "no line with \"" << part << "\" in:\n" << text();
    return "";
  }

  ChildEnd wait() {
    const auto begin = std::chrono::steady_clock::now();
    while (!child().end() && std::chrono::steady_clock::now() - begin < kHang) {
      wait_for_children(child_, -1, kHang);
    }
    EXPECT_TRUE(child().end().has_value()) << text();
    return child().end().value_or(ChildEnd{-1, -1});
  }

  std::string text() const {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }

  std::vector<std::string> lines;

 private:
  std::vector<std::unique_ptr<ChildProcess>> child_;
};

// A child that runs a shell script.
inline std::vector<std::string> shell(const std::string& script) {
  return {"/bin/sh", "-c", script};
}

// The number at the end of a line.
inline pid_t pid_in(std::string_view line) {
  pid_t pid = -1;
  const std::size_t at = line.rfind(' ') + 1;
  std::from_chars(line.data() + at, line.data() + line.size(), pid);
  return pid;
}

}  // namespace troupe::launch
