#pragma once

// Requests to a server of http and its answers; for remote_copy.cpp.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/data/remote_copy.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// Takes bytes of the file in order; `first` is the place of the first byte of the answer, which is
// 0 where the server has not heeded what was asked. False ends the transfer.
using TakeBytes = std::function<bool(std::uint64_t first, std::span<const char> bytes)>;

// Asks what version there is.
RemoteAnswer ask_version(const std::string& address, const CopyOptions& options);

// Gets the file from byte `from` on, if its version is still `version`; else all of it.
RemoteAnswer get_rest(const std::string& address, std::uint64_t from, const RemoteVersion& version,
                      const CopyOptions& options, const TakeBytes& take);

// Puts a file with this content at the address. False of `goes_on`, which is asked with the bytes
// that have gone, and at least once a second, ends it.
RemoteAnswer put_bytes(const std::string& address, std::string_view content,
                       const CopyOptions& options,
                       const std::function<bool(std::uint64_t sent)>& goes_on);

// Makes the folder of what lies at the address, and those around it that are missing, by MKCOL.
// Its failure says which one cannot be made.
RemoteAnswer make_folder_of(const std::string& address, const CopyOptions& options);

// The addresses that begin with this one, of S3. Errors (kData) name the address.
runtime::Result<std::vector<std::string>> list_bucket(const std::string& prefix,
                                                      const CopyOptions& options);

// One page of the answer of a bucket (ListObjectsV2): keys, and where the next page begins, empty
// at the end.
struct BucketPage {
  std::vector<std::string> keys;
  std::string next;
};
// Nothing where the text is no such answer.
std::optional<BucketPage> read_bucket_page(std::string_view xml);

}  // namespace troupe::pipeline
