#pragma once

// Requests to a server and its answers; for remote_copy.cpp.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "pipeline/data/remote_copy.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// Which version of a file a server has.
struct RemoteVersion {
  std::string tag;  // ETag, or the time of the last change; empty: the server tells neither
  std::uint64_t size = 0;
  bool has_size = false;

  bool operator==(const RemoteVersion&) const = default;
};

struct RemoteAnswer {
  RemoteVersion version;  // of the whole file
  // Another attempt may succeed: nobody is to blame but the line or the server's state.
  bool again = false;
  bool beyond = false;  // the file ends before the byte that was asked for
  std::string failure;  // why it has not, without the address; empty: it has
};

// Takes bytes of the file in order; `first` is the place of the first byte of the answer, which is
// 0 where the server has not heeded what was asked. False ends the transfer.
using TakeBytes = std::function<bool(std::uint64_t first, std::span<const char> bytes)>;

// Asks what version there is.
RemoteAnswer ask_version(const std::string& address, const CopyOptions& options);

// Gets the file from byte `from` on, if its version is still `version`; else all of it.
RemoteAnswer get_rest(const std::string& address, std::uint64_t from, const RemoteVersion& version,
                      const CopyOptions& options, const TakeBytes& take);

}  // namespace troupe::pipeline
