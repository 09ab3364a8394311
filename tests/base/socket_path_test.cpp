#include "runtime/base/socket_path.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/base/descriptor.h"
#include "tests/support/temporary_folder.h"

namespace troupe::runtime {
namespace {

Descriptor listen_at(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof(name.sun_path) - 1);
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* address = reinterpret_cast<const sockaddr*>(&name);
  CHECK(::bind(socket.number(), address, sizeof(name)) == 0 && ::listen(socket.number(), 1) == 0);
  return socket;
}

TEST(SocketFile, GoesWithItsObject) {
  TemporaryFolder folder;
  const std::string path = folder / "socket";
  const Descriptor socket = listen_at(path);
  {
    const SocketFile other("tcp://127.0.0.1:8500"), file("ipc://" + path);
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(SocketFile, OfAnotherProcessThatTookThePathStays) {
  TemporaryFolder folder;
  const std::string path = folder / "socket";
  const Descriptor first = listen_at(path);
  std::optional<SocketFile> file("ipc://" + path);
  std::filesystem::rename(path, folder / "moved");
  const Descriptor second = listen_at(path);
  file.reset();
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(SocketFile, FileThatIsNoSocketStays) {
  TemporaryFolder folder;
  write_text(folder / "results", "a year's work");
  { const SocketFile file("ipc://" + folder / "results"); }
  EXPECT_EQ(read_text(folder / "results"), "a year's work");
}

TEST(CheckSocketPath, TakesAFreePathAndWhatAnEndedProcessLeft) {
  TemporaryFolder folder;
  const std::string path = folder / "socket";
  EXPECT_TRUE(check_socket_path(path).ok());
  {
    const Descriptor socket = listen_at(path);
    EXPECT_FALSE(check_socket_path(path).ok());
  }
  EXPECT_TRUE(check_socket_path(path).ok());
}

}  // namespace
}  // namespace troupe::runtime
