#pragma once

// The folder of one fuzz target's first inputs.

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>

#include "fuzz/frames.h"
#include "runtime/base/error.h"

namespace troupe::fuzz {

class Folder {
 public:
  explicit Folder(std::filesystem::path path) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
  }
  void add(const std::string& name, std::span<const std::byte> bytes) const {
    std::ofstream file(path_ / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    CHECK(file.good(), "cannot write " + (path_ / name).string());
  }
  void add(const std::string& name, const runtime::Packet& packet) const {
    add(name, input_of(packet));
  }
  void add_text(const std::string& name, const std::string& text) const {
    add(name, std::as_bytes(std::span(text)));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace troupe::fuzz
