#include "runtime/base/descriptor.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include <fmt/format.h>

namespace troupe::runtime {

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

bool descriptors_left(std::size_t count) {
  std::vector<Descriptor> probes;
  while (probes.size() < count) {
    Descriptor probe(::eventfd(0, EFD_CLOEXEC));
    if (!probe.is_open()) break;
    probes.push_back(std::move(probe));
  }
  return probes.size() == count;
}

bool is_out_of_descriptors(int number) { return number == EMFILE || number == ENFILE; }

Error out_of_descriptors(ErrorKind kind, std::string_view whom) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::string advice =
      limit.rlim_cur < limit.rlim_max
          ? fmt::format("give it more, such as 'ulimit -n {}', and start again", limit.rlim_max)
          : std::string(
                "whoever administers the machine, the batch system or the container sets "
                "that limit");
  return {kind,
          fmt::format("no file descriptors are left for {}: this process may have {} ('ulimit "
                      "-n'); {}. The system as a whole may have none left, too",
                      whom, limit.rlim_cur, advice)};
}

}  // namespace troupe::runtime
