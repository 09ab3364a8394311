#include "runtime/base/secret.h"

#include <sys/random.h>

#include <cerrno>

#include "runtime/base/error.h"

namespace troupe::runtime {

void fill_secret(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::getrandom(bytes.data(), bytes.size(), 0);
    CHECK(count > 0 || errno == EINTR, "the system gives no random bytes");
    if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

std::uint64_t secret_number() {
  std::uint64_t number = 0;
  while (number == 0) fill_secret(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

}  // namespace troupe::runtime
