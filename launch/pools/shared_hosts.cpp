#include "launch/pools/shared_hosts.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <system_error>

#include <fmt/format.h>

#include "launch/pools/pool_journal.h"

namespace troupe::launch {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

Result<void> SharedHosts::take(const std::string& host) {
  if (folder_.empty() || taken_.contains(host)) return {};
  const std::string name = fmt::format("{}/{}@{}", folder_, pool_, host);
  const auto failed = [&] {
    return Error{ErrorKind::kData,
                 fmt::format("{}: {}", name, std::generic_category().message(errno))};
  };
  runtime::Descriptor file(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file.is_open()) return failed();
  if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed();
    return Error{ErrorKind::kUsage, fmt::format("{} has a node of another run", host)};
  }
  std::array<char, PATH_MAX> text{};
  const auto length = ::pread(file.number(), text.data(), text.size(), 0);
  if (length < 0) return failed();
  const std::string last(text.data(), static_cast<std::size_t>(length));
  if (!last.empty() && last != journal_ && is_left_by(last, host)) {
    return Error{ErrorKind::kUsage, fmt::format("{} has a node that is left of {}", host, last)};
  }
  const bool is_noted =
      ::ftruncate(file.number(), 0) == 0 &&
      ::pwrite(file.number(), journal_.data(), journal_.size(), 0) == std::ssize(journal_);
  if (!is_noted) return failed();
  taken_.emplace(host, std::move(file));
  return {};
}

bool SharedHosts::is_left_by(const std::string& journal, const std::string& host) const {
  const auto left = nodes_left(read_pool_journal(journal));
  return std::ranges::any_of(
      left, [&](const actors::PoolNode& node) { return node.pool == pool_ && node.id == host; });
}

}  // namespace troupe::launch
