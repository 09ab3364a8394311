#include "launch/machine/usable_machine.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "launch/machine/control_groups.h"
#include "runtime/base/descriptor.h"

namespace troupe::launch {

UsableMemory usable_memory() {
  double machine =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  machine = std::min(machine, control_group_limits().memory_bytes.value_or(machine));
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return {machine, machine};
  }
  return {machine, std::min(machine, static_cast<double>(limit.rlim_cur))};
}

// The second number of statm is pages in memory.
std::int64_t resident_bytes() {
  const runtime::Descriptor file(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  char text[128];
  const ssize_t size = file.is_open() ? ::read(file.number(), text, sizeof(text) - 1) : -1;
  if (size <= 0) return 0;
  text[size] = '\0';
  char* rest = nullptr;
  (void)std::strtoll(text, &rest, 10);
  return std::strtoll(rest, nullptr, 10) * ::sysconf(_SC_PAGESIZE);
}

runtime::Result<void> check_room_for_file(const std::string& helps) {
  constexpr double kMostShare = 0.45;
  const double usable = usable_memory().process;
  if (static_cast<double>(resident_bytes()) < kMostShare * usable) return {};
  return runtime::Error{
      runtime::ErrorKind::kData,
      fmt::format("a file is made in memory, where {:.2f} GB may be used, and this one would take "
                  "more; {}",
                  usable / 1e9, helps)};
}

int usable_processors() {
  // Those it may run on; of a machine with more than the set can hold, all that are on.
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const bool known = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  double count = known ? CPU_COUNT(&allowed) : static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  count = std::min(count, std::ceil(control_group_limits().processors.value_or(count)));
  return std::max(1, static_cast<int>(count));
}

}  // namespace troupe::launch
