#include "launch/run/remote_files.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "launch/run/xrootd_source.h"
#include "pipeline/data/file_bytes.h"
#include "pipeline/data/idx_file.h"
#include "pipeline/data/near_copy.h"
#include "pipeline/data/remote_copy.h"
#include "runtime/base/clock.h"

namespace troupe::launch {

using runtime::Log;
using runtime::Result;

namespace {

pipeline::Progress copy_progress(const std::string& address, Log& log) {
  return [address = pipeline::shown_address(address), &log, start = runtime::steady_now(),
          last = runtime::steady_now()](std::uint64_t done,
                                        std::uint64_t total) mutable -> Result<void> {
    const auto now = runtime::steady_now();
    if (now - last < std::chrono::seconds(2)) return {};
    last = now;
    log.info(fmt::format("copying {}: {:.1f} of {:.1f} MB, {:.1f} MB/s", address,
                         static_cast<double>(done) / 1e6, static_cast<double>(total) / 1e6,
                         static_cast<double>(done) / 1e6 / runtime::seconds(now - start)));
    return {};
  };
}

// The address of the labels beside images; nothing where the copy is no file of IDX images, or
// nobody looks for labels.
std::optional<std::string> labels_beside(const std::string& address, const std::string& copy) {
  if (!pipeline::is_idx(pipeline::head_of(copy))) return std::nullopt;
  return pipeline::idx_labels_path(address);
}

}  // namespace

const pipeline::RemoteSource& source_of(const std::string& address) {
  static const pipeline::WebSource kWeb;
  static const XrootdSource kXrootd;
  if (address.starts_with("root")) return kXrootd;
  return kWeb;
}

Result<std::vector<runtime::Descriptor>> bring_near(pipeline::DatasetOptions& options, Log& log) {
  std::vector<runtime::Descriptor> held;
  const auto bring = [&](const std::string& address) -> Result<std::string> {
    ASSIGN_OR_RETURN(pipeline::NearCopy copy,
                     pipeline::near_copy(source_of(address), address,
                                         {options.cache_folder, options.cache_limit},
                                         copy_progress(address, log)));
    log.info(fmt::format("{} is copied to {}", pipeline::shown_address(address), copy.path));
    held.push_back(std::move(copy.held));
    return std::move(copy.path);
  };
  std::vector<std::string> paths;
  for (const std::string& path : options.paths) {
    if (!pipeline::is_readable_address(path)) {
      paths.push_back(path);
      continue;
    }
    ASSIGN_OR_RETURN(const auto addresses, pipeline::expand_address(source_of(path), path));
    for (const std::string& address : addresses) {
      ASSIGN_OR_RETURN(const std::string copy, bring(address));
      if (const auto labels = labels_beside(address, copy)) RETURN_IF_ERROR(bring(*labels));
      options.origins[copy] = address;
      paths.push_back(copy);
    }
  }
  options.paths = std::move(paths);
  return held;
}

}  // namespace troupe::launch
