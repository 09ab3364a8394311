// Slurm whose nodes are off until jobs ask for them, as in a cloud.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>

#include "tests/main/slurm_pool.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

class SlurmCloud : public SlurmPool {
 protected:
  SlurmCloud() : SlurmPool("cloud", true) {}

  // How many machines are on, which are those that cost money.
  int machines() const {
    int count = 0;
    std::istringstream lines(read_text(path("slurm/power")));
    for (std::string line; std::getline(lines, line);) count += line.ends_with(" on") ? 1 : -1;
    return count;
  }
};

TEST_F(SlurmCloud, MachinesBootForTheRunAndAreLetGo) {
  write_text(path("slurm/slow"), "");
  Process all(command(endless(slurm_pool(1, "[]", ", starts_in: 12 s"))));
  ASSERT_TRUE(wait_until(all, "hpc", 1, "starting")) << log();
  EXPECT_THAT(jobs(), HasSubstr("CONFIGURING"));
  // A machine that boots may take longer than its members may.
  std::this_thread::sleep_for(std::chrono::seconds(15));
  EXPECT_EQ(machines(), 0);
  EXPECT_EQ(nodes()["hpc.0"].state, "starting");
  std::filesystem::remove(path("slurm/slow"));
  ASSERT_TRUE(wait_until(all, "hpc", 1, "running")) << log() << jobs();
  EXPECT_EQ(machines(), 1);

  EXPECT_EQ(burst("2", "hpc").exit_code, 0);
  ASSERT_TRUE(wait_until(all, "hpc", 2, "running")) << log() << jobs();
  EXPECT_EQ(machines(), 2);
  EXPECT_EQ(burst("1", "hpc").exit_code, 0);
  ASSERT_TRUE(all.wait_until([&] { return machines() == 1; })) << log();
  EXPECT_THAT(log(), Not(HasSubstr("has not joined")));
  EXPECT_THAT(log(), Not(HasSubstr("hpc.2")));
  end(all);
  EXPECT_TRUE(wait_for([&] { return machines() == 0; }));
}

}  // namespace
}  // namespace troupe
