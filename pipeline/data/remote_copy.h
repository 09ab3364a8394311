#pragma once

// Files of https, http, and stores that speak S3, read and written by libcurl.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/data/remote_source.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

struct CopyOptions {
  // In a row that have brought nothing, of a server that fails, answers too slowly or breaks off;
  // each goes on where the last ended.
  int attempts = 6;
  // Before the second of them; twice as long before each further one.
  std::chrono::milliseconds pause{500};
  // A transfer that stands still so long, or moves fewer bytes a second than these, is broken off.
  std::chrono::seconds patience{30};
  std::uint64_t least_rate = 10'000;
};

// S3: credentials are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or else those
// of AWS_PROFILE (default) in ~/.aws/credentials, or AWS_SHARED_CREDENTIALS_FILE; without any the
// request is not signed. The region is AWS_REGION or AWS_DEFAULT_REGION (us-east-1); a store other
// than Amazon's is AWS_ENDPOINT_URL. https: names and passwords are taken from ~/.netrc, and never
// from an address; the certificates that are trusted from the system or the file CURL_CA_BUNDLE.
//
// Errors of copy() are, among others, no such file, credentials that do not suffice, a certificate
// of another name, a server that does not answer, a disk that would be full. A copy that failed, or
// whose process was killed, is gone on with, unless the server has another version meanwhile.
class WebSource final : public RemoteSource {
 public:
  explicit WebSource(const CopyOptions& options = {}) : options_(options) {}

  // Asks for the first byte where the server refuses to tell of a file without sending it, as it
  // does for addresses that are signed for one way of asking.
  RemoteAnswer version(const std::string& address) const override;
  runtime::Result<void> copy(const std::string& address, const std::string& path,
                             const std::string& checksum, const Progress& progress) const override;
  // By the method PUT; of S3 in one request, which has 5 GiB at most. The file is in memory
  // meanwhile. Folders that a server of WebDAV misses are made, by the method MKCOL.
  runtime::Result<void> put(const std::string& path, const std::string& address,
                            const Progress& progress) const override;
  // S3 alone has lists.
  runtime::Result<std::vector<std::string>> list(const std::string& prefix) const override;

 private:
  CopyOptions options_;
};

}  // namespace troupe::pipeline
