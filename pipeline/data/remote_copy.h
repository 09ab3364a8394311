#pragma once

// Copies of files that lie on servers: https, http, and stores that speak S3. libcurl reads them.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "pipeline/data/progress.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

struct CopyOptions {
  // In a row that have brought nothing, of a server that fails, answers too slowly or breaks off;
  // each goes on where the last ended.
  int attempts = 6;
  // Before the second of them; twice as long before each further one.
  std::chrono::milliseconds pause{500};
  // A transfer that stands still so long is broken off.
  std::chrono::seconds patience{30};
  // The checksum that the copy must have: "sha256:" or "md5:" and hexadecimal digits; empty:
  // anything.
  std::string checksum;
};

// Whether it is a checksum as CopyOptions has it.
bool is_checksum(std::string_view text);
// "sha256:..." or "md5:..." of a file, by what `like` begins with. Errors (kData): it cannot be
// read.
runtime::Result<std::string> checksum_of(const std::string& path, std::string_view like);

// True for addresses that are read here: "https://...", "http://...", "s3://BUCKET/KEY".
bool is_readable_address(std::string_view address);

// The address as messages tell it: without what stands behind a question mark, which may be a
// signature, and without a name and a password. What is no address stays as it is.
std::string shown_address(const std::string& address);

// Copies what lies at the address to `path`, which then holds all of it or what it held before.
// The bytes of a copy that failed, or whose process was killed, stay in "PATH.part", and the
// next attempt asks for the rest, unless the server has another version meanwhile.
//
// S3: credentials are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or else those
// of AWS_PROFILE (default) in ~/.aws/credentials, or AWS_SHARED_CREDENTIALS_FILE; without any the
// request is not signed. The region is AWS_REGION or AWS_DEFAULT_REGION (us-east-1); a store other
// than Amazon's is AWS_ENDPOINT_URL. https: names and passwords are taken from ~/.netrc, and never
// from an address; the certificates that are trusted from the system or the file CURL_CA_BUNDLE.
// One process copies to a path at a time, the others wait.
//
// `progress` is told bytes. Errors (kData) name the address and what to do: no such file,
// credentials that do not suffice, a certificate of another name, another checksum, a server that
// does not answer, a disk that would be full.
runtime::Result<void> copy_from(const std::string& address, const std::string& path,
                                const CopyOptions& options, const Progress& progress = {});

// A copy in a folder that several processes and runs share: the same address gives the same path,
// FOLDER/SCHEME/HOST/..., so that names sort as on the server; names with signs that are not
// harmless, or that are too long, have a hash behind them. One process copies, the others wait for
// it. A copy is used again as long as the server has the same version of the file (ETag or time,
// and size), which is asked each time; of a server that tells neither, it is copied each time.
runtime::Result<std::string> near_copy(const std::string& address, const std::string& folder,
                                       const CopyOptions& options, const Progress& progress = {});

}  // namespace troupe::pipeline
