#pragma once

// Checksums of files as people write them: "sha256:" or "md5:" and hexadecimal digits.

#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace troupe::pipeline {

bool is_checksum(std::string_view text);

// That of a file, by what `like` begins with. Errors (kData): it cannot be read.
runtime::Result<std::string> checksum_of(const std::string& path, std::string_view like);

// The hexadecimal digits of SHA-256.
std::string sha256_of(std::string_view content);

}  // namespace troupe::pipeline
