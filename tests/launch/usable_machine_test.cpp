#include "launch/machine/usable_machine.h"

#include <gmock/gmock.h>

#include <fstream>
#include <string>

#include "tests/launch/launch_support.h"

namespace troupe::launch {
namespace {

namespace fs = std::filesystem;
using testing::Optional;

class ControlGroups : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& content) {
    const fs::path file = system_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }
  // Version 2, mounted where containers have it.
  void write_version_2(const std::string& group) {
    write("proc/self/mountinfo",
          "24 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
          "31 24 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
    write("proc/self/cgroup", "0::" + group + "\n");
  }
  // Version 1. The memory's hierarchy is mounted from `top` of it on.
  void write_version_1(const std::string& top, const std::string& group) {
    write("proc/self/mountinfo",
          "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup "
          "rw,cpu,cpuacct\n35 31 0:32 " +
              top + " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    write("proc/self/cgroup", "9:name=systemd:/\n4:memory:" + group + "\n2:cpu,cpuacct:/batch\n");
  }
  ControlGroupLimits limits() const { return control_group_limits(system_ / ""); }

 private:
  TemporaryFolder system_;
};

TEST_F(ControlGroups, AContainersLimitsAreThoseAtItsTop) {
  write_version_2("/");
  write("sys/fs/cgroup/memory.max", "2147483648\n");
  write("sys/fs/cgroup/cpu.max", "250000 100000\n");
  EXPECT_THAT(limits().memory_bytes, Optional(2147483648.0));
  EXPECT_THAT(limits().processors, Optional(2.5));
}

TEST_F(ControlGroups, TheTightestOfTheGroupsAroundCounts) {
  write_version_2("/user/job/step");
  write("sys/fs/cgroup/user/memory.max", "8000\n");
  write("sys/fs/cgroup/user/job/memory.max", "5000\n");
  write("sys/fs/cgroup/user/job/step/memory.max", "max\n");
  write("sys/fs/cgroup/user/job/step/cpu.max", "400000 100000\n");
  write("sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
  EXPECT_THAT(limits().memory_bytes, Optional(5000.0));
  EXPECT_THAT(limits().processors, Optional(4.0));
}

TEST_F(ControlGroups, VersionOneHasAHierarchyForEachController) {
  write_version_1("/", "/batch/job7");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/batch/job7/memory.limit_in_bytes", "3000\n");
  write("sys/fs/cgroup/cpu,cpuacct/batch/cpu.cfs_quota_us", "150000\n");
  write("sys/fs/cgroup/cpu,cpuacct/batch/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/memory/batch/cpu.cfs_quota_us", "1\n");  // of another hierarchy
  EXPECT_THAT(limits().memory_bytes, Optional(3000.0));
  EXPECT_THAT(limits().processors, Optional(1.5));
}

TEST_F(ControlGroups, AQuotaOfMinusOneIsNone) {
  write_version_1("/", "/");
  write("sys/fs/cgroup/cpu,cpuacct/batch/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/batch/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limits().processors, std::nullopt);
}

TEST_F(ControlGroups, AMountedPartOfTheHierarchyBeginsAtItsTop) {
  write_version_1("/docker/abc", "/docker/abc/inner");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "7000\n");
  write("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "6000\n");
  EXPECT_THAT(limits().memory_bytes, Optional(6000.0));
  // The process sees less of the path than the mount tells, or another one.
  write_version_1("/docker/abc", "/");
  EXPECT_THAT(limits().memory_bytes, Optional(7000.0));
}

TEST_F(ControlGroups, WhatCannotBeReadIsNoLimit) {
  EXPECT_EQ(limits().memory_bytes, std::nullopt);
  write_version_2("/job");
  write("sys/fs/cgroup/job/memory.max", "much\n");
  write("sys/fs/cgroup/job/cpu.max", "100000\n");
  write("sys/fs/cgroup/memory.max", "");
  EXPECT_EQ(limits().memory_bytes, std::nullopt);
  EXPECT_EQ(limits().processors, std::nullopt);
  write("proc/self/cgroup", "no group\n\n0\n:\n");
  write("proc/self/mountinfo", "31 - cgroup2\n - \n1 2 3 - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(limits().memory_bytes, std::nullopt);
}

TEST(UsableMachine, IsNotMoreThanItsLimits) {
  const UsableMemory memory = usable_memory();
  const ControlGroupLimits limits = control_group_limits();
  EXPECT_GT(memory.process, 0);
  EXPECT_LE(memory.process, memory.machine);
  EXPECT_LE(memory.machine, limits.memory_bytes.value_or(memory.machine));
  EXPECT_GE(usable_processors(), 1);
  EXPECT_LT(usable_processors(), limits.processors.value_or(usable_processors()) + 1);
}

}  // namespace
}  // namespace troupe::launch
