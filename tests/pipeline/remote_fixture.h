#pragma once

// A small server of our own on loopback, which can fail in many ways, and who asks it.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/data/near_copy.h"
#include "pipeline/data/remote_copy.h"
#include "runtime/base/random.h"
#include "tests/pipeline/format_fixture.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace troupe::pipeline {

inline std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::string noise_text(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(runtime::mix64(i));
  return text;
}

// Variables of the environment as they were, at its end.
class Environment {
 public:
  ~Environment() {
    for (const auto& [name, value] : before_) {
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
  }
  void set(const std::string& name, const std::string& value) {
    const char* const was = std::getenv(name.c_str());
    before_.emplace_back(name, was == nullptr ? std::nullopt : std::optional<std::string>(was));
    ::setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

class RemoteCopy : public testing::Test {
 protected:
  RemoteCopy() {
    std::filesystem::create_directory(folder_ / "served");
    content_ = noise_text(200'000);
    write_text(folder_ / "served/a.h5", content_);
    for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "AWS_PROFILE"}) {
      environment_.set(name, "");
    }
    environment_.set("AWS_SHARED_CREDENTIALS_FILE", folder_ / "none");
    environment_.set("HOME", folder_.path());
    environment_.set("no_proxy", "127.0.0.1");
    options_.pause = std::chrono::milliseconds(1);
  }

  // "http://127.0.0.1:PORT", of a server that lives as long as the test.
  std::string server(const Words& more = {}) {
    server_ = std::make_unique<Process>(
        Words{TROUPE_SOURCE_DIR "/tests/pipeline/file_server", folder_ / "served"} + more);
    CHECK(server_->wait_until([&] { return server_->out().ends_with('\n'); }), server_->err());
    const std::string port = server_->out().substr(0, server_->out().size() - 1);
    return fmt::format("{}://127.0.0.1:{}", more.empty() ? "http" : "https", port);
  }
  // A certificate for these names and its key, for server().
  Words certificate(const std::string& names) const {
    Process made({"/usr/bin/openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj",
                  "/CN=elsewhere", "-addext", "subjectAltName=" + names, "-days", "2", "-keyout",
                  folder_ / "key", "-out", folder_ / "certificate"});
    CHECK(made.wait().exit_code == 0);
    return {folder_ / "certificate", folder_ / "key"};
  }
  // Bytes of data that it has sent.
  std::string sent(const std::string& address) {
    const auto copied = copy(address + "/log", folder_ / "log");
    CHECK(copied.ok(), copied.ok() ? "" : copied.error().message);
    return text_of(folder_ / "log");
  }

  runtime::Result<void> copy(const std::string& address, const std::string& path,
                             const Progress& progress = {}, const std::string& checksum = {}) {
    return copy_from(WebSource(options_), address, path, checksum, progress);
  }
  // The path of the copy, which nothing keeps there.
  runtime::Result<std::string> near(const std::string& address) {
    ASSIGN_OR_RETURN(NearCopy copied,
                     near_copy(WebSource(options_), address, {folder_ / "near", bound_}));
    return std::move(copied.path);
  }

  TemporaryFolder folder_;
  std::uint64_t bound_ = 0;
  Environment environment_;
  CopyOptions options_;
  std::string content_;
  std::unique_ptr<Process> server_;
};

}  // namespace troupe::pipeline
