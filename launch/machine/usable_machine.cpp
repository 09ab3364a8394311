#include "launch/machine/usable_machine.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "runtime/base/descriptor.h"

namespace troupe::launch {

namespace {

namespace fs = std::filesystem;

// A folder at which a hierarchy of groups is mounted.
struct Mount {
  std::string group;  // that is its top, as /proc/self/cgroup would name it
  fs::path folder;
  std::vector<std::string> controllers;  // of version 1; version 2 has one hierarchy for all
  bool version_2 = false;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// Lines such as "36 32 0:31 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup
// rw,memory".
std::vector<Mount> mounts(const fs::path& system) {
  std::vector<Mount> found;
  std::ifstream file(system / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto place = split(line.substr(0, dash), ' ');
    const auto kind = split(line.substr(dash + 3), ' ');
    if (place.size() < 5 || kind.size() < 3) continue;
    if (kind[0] != "cgroup" && kind[0] != "cgroup2") continue;
    found.push_back({place[3], system / fs::path(place[4]).relative_path(), split(kind[2], ','),
                     kind[0] == "cgroup2"});
  }
  return found;
}

// `controllers`: none for version 2.
bool is_of(const Mount& mount, const std::vector<std::string>& controllers) {
  if (mount.version_2 || controllers.empty()) return mount.version_2 && controllers.empty();
  const auto& mounted = mount.controllers;
  return std::find_first_of(mounted.begin(), mounted.end(), controllers.begin(),
                            controllers.end()) != mounted.end();
}

// Folders of a group and of those around it. `group` is as the process sees it, and the mount may
// show a part of the hierarchy alone: where they do not meet, the top of that part is all that can
// be known.
std::vector<fs::path> folders(const Mount& mount, const std::string& group) {
  std::vector<fs::path> found{mount.folder};
  const fs::path inside = fs::path(group).lexically_relative(mount.group);
  if (inside.empty() || *inside.begin() == ".." || inside == ".") return found;
  for (const fs::path& part : inside) found.push_back(found.back() / part);
  return found;
}

// Numbers of a file's only line; nothing in place of "max" and of what is not a number.
std::vector<std::optional<double>> numbers(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::optional<double>> values;
  for (std::string word; values.size() < 2 && file >> word;) {
    std::istringstream stream(word);
    double value = 0;
    values.push_back(stream >> value && value > 0 ? std::optional(value) : std::nullopt);
  }
  values.resize(2);
  return values;
}

void tighten(std::optional<double>& limit, std::optional<double> value) {
  if (value) limit = std::min(limit.value_or(*value), *value);
}

std::optional<double> ratio(std::optional<double> time, std::optional<double> period) {
  if (!time || !period) return {};
  return *time / *period;
}

// A group of version 1 has the files of its controllers alone, and the top of all has none.
void read_limits(const fs::path& folder, ControlGroupLimits& limits) {
  tighten(limits.memory_bytes, numbers(folder / "memory.max")[0]);
  tighten(limits.memory_bytes, numbers(folder / "memory.limit_in_bytes")[0]);
  const auto time_and_period = numbers(folder / "cpu.max");
  tighten(limits.processors, ratio(time_and_period[0], time_and_period[1]));
  tighten(limits.processors,
          ratio(numbers(folder / "cpu.cfs_quota_us")[0], numbers(folder / "cpu.cfs_period_us")[0]));
}

}  // namespace

ControlGroupLimits control_group_limits(const fs::path& system) {
  ControlGroupLimits limits;
  const std::vector<Mount> all = mounts(system);
  std::ifstream file(system / "proc/self/cgroup");
  // Lines such as "4:memory:/batch/job7", and "0::/batch/job7" of version 2.
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = split(line.substr(first + 1, second - first - 1), ',');
    const std::string group = line.substr(second + 1);
    for (const Mount& mount : all) {
      if (!is_of(mount, controllers)) continue;
      for (const fs::path& folder : folders(mount, group)) read_limits(folder, limits);
    }
  }
  return limits;
}

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
