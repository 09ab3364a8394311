#include "runtime/base/socket_path.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "runtime/base/descriptor.h"

namespace troupe::runtime {

Result<void> check_socket_path(const std::string& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return {};
  if (!S_ISSOCK(facts.st_mode)) {
    return Error{ErrorKind::kUsage, "a file of that name exists; give another path"};
  }
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.c_str(), std::min(path.size(), sizeof(name.sun_path) - 1));
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.is_open()) return {};
  const auto* address = reinterpret_cast<const sockaddr*>(&name);
  if (::connect(probe.number(), address, sizeof(name)) != 0 && errno == ECONNREFUSED) return {};
  return Error{ErrorKind::kUsage, "another process listens there; end it or give another path"};
}

SocketFile::SocketFile(const std::string& endpoint) {
  constexpr std::string_view kIpc = "ipc://";
  struct stat facts {};
  if (!endpoint.starts_with(kIpc)) return;
  std::string path = endpoint.substr(kIpc.size());
  if (::lstat(path.c_str(), &facts) != 0 || !S_ISSOCK(facts.st_mode)) return;
  path_ = std::move(path);
  device_ = facts.st_dev;
  inode_ = facts.st_ino;
}

SocketFile::~SocketFile() {
  struct stat facts {};
  if (path_.empty() || ::lstat(path_.c_str(), &facts) != 0) return;
  if (facts.st_dev == device_ && facts.st_ino == inode_) ::unlink(path_.c_str());
}

}  // namespace troupe::runtime
