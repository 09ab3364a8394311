#include "launch/meeting/allocation.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <thread>

#include "launch/meeting/key_folder.h"
#include "launch/meeting/pmi.h"
#include "tests/launch/launch_support.h"
#include "tests/support/temporary_folder.h"

namespace troupe::launch {
namespace {

using runtime::Result;
using testing::HasSubstr;
using testing::StartsWith;
using Environment = std::map<std::string, std::string>;

Result<std::optional<Allocation>> find(const Environment& environment) {
  return find_allocation([&](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  });
}

Allocation found(const Environment& environment) {
  const auto allocation = find(environment);
  EXPECT_TRUE(allocation.ok()) << allocation.error().message;
  EXPECT_TRUE(allocation.ok() && allocation->has_value());
  return allocation.ok() && *allocation ? **allocation : Allocation{};
}

const Environment kSlurm{{"SLURM_JOB_ID", "17"},
                         {"SLURM_STEP_ID", "2"},
                         {"SLURM_PROCID", "3"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_STEP_NUM_TASKS", "8"}};
const Environment kOpenMpi{{"OMPI_COMM_WORLD_RANK", "1"},
                           {"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"PMIX_NAMESPACE", "1674772481"}};
const Environment kRanks{{"RANK", "2"},
                         {"WORLD_SIZE", "4"},
                         {"LOCAL_RANK", "0"},
                         {"MASTER_ADDR", "node-a"},
                         {"MASTER_PORT", "29500"}};

Environment with(Environment environment, const std::string& name, const std::string& value) {
  environment[name] = value;
  return environment;
}
Environment without(Environment environment, const std::string& name) {
  environment.erase(name);
  return environment;
}

TEST(Allocation, ProcessThatWasStartedAloneIsInNone) {
  for (const Environment& alone :
       {Environment{},
        Environment{{"SLURM_JOB_ID", "17"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}},
        with(with(kSlurm, "SLURM_STEP_NUM_TASKS", "1"), "SLURM_PROCID", "0"),
        Environment{{"RANK", "0"}, {"WORLD_SIZE", "1"}}}) {
    const auto allocation = find(alone);
    ASSERT_TRUE(allocation.ok()) << allocation.error().message;
    EXPECT_FALSE(allocation->has_value());
  }
}

TEST(Allocation, IsReadFromWhatTheStarterSays) {
  const Allocation slurm = found(kSlurm);
  EXPECT_EQ(slurm.name, "Slurm step 17.2");
  EXPECT_EQ(std::tuple(slurm.rank, slurm.size, slurm.place), std::tuple(3U, 8U, 1U));
  EXPECT_EQ(slurm.host, "");
  EXPECT_EQ(found(with(kSlurm, "SLURM_RESTART_COUNT", "1")).name, "Slurm step 17.2 restart 1");
  const Allocation mpi = found(kOpenMpi);
  EXPECT_EQ(mpi.name, "mpirun 1674772481");
  EXPECT_EQ(std::tuple(mpi.rank, mpi.size, mpi.place), std::tuple(1U, 4U, 1U));
  const Allocation ranks = found(kRanks);
  EXPECT_EQ(std::tuple(ranks.rank, ranks.size, ranks.host, ranks.port),
            std::tuple(2U, 4U, "node-a", 29500));
}

// As mpirun within a job of Slurm, whose step may have started it alone or its proxies.
TEST(Allocation, IsThatOfTheInnermostStarterOfSeveral) {
  const auto both = [](Environment one, const Environment& other) {
    one.insert(other.begin(), other.end());
    return one;
  };
  const Environment alone = with(with(kSlurm, "SLURM_STEP_NUM_TASKS", "1"), "SLURM_PROCID", "0");
  for (const Environment& slurm : {kSlurm, alone}) {
    EXPECT_EQ(found(both(kOpenMpi, slurm)).name, "mpirun 1674772481");
    EXPECT_EQ(found(both(kRanks, slurm)).name, "node-a:29500");
  }
  EXPECT_EQ(found(both(kRanks, kOpenMpi)).name, "node-a:29500");
  EXPECT_EQ(found(both(with(with(kRanks, "RANK", "0"), "WORLD_SIZE", "1"), kSlurm)).name,
            "Slurm step 17.2");
  // RANK alone is somebody's own variable, and MPICH's PMI_RANK is Slurm's as well.
  EXPECT_EQ(found(both(without(kRanks, "MASTER_ADDR"), kSlurm)).name, "Slurm step 17.2");
  EXPECT_EQ(found(both({{"PMI_RANK", "1"}, {"PMI_SIZE", "8"}, {"PMI_FD", "9"}}, kSlurm)).name,
            "Slurm step 17.2");
}

TEST(Allocation, OfTensorFlowHasTheChiefFirst) {
  const auto config = [](const std::string& task) {
    return Environment{
        {"TF_CONFIG",
         R"({"cluster":{"worker":["b:2222","c:2223"],"chief":["a:2221"],"ps":["p:1"]},)"
         R"("task":)" +
             task + "}"}};
  };
  const Allocation worker = found(config(R"({"type":"worker","index":1})"));
  EXPECT_EQ(std::tuple(worker.rank, worker.size, worker.host, worker.port),
            std::tuple(2U, 3U, "a", 2221));
  EXPECT_EQ(found(config(R"({"type":"chief","index":0})")).rank, 0U);
  for (const char* task : {R"({"type":"ps","index":0})", R"({"type":"worker","index":2})",
                           R"({"type":3,"index":"x"})", "{}"}) {
    const auto none = find(config(task));
    ASSERT_FALSE(none.ok()) << task;
    EXPECT_THAT(none.error().message, HasSubstr("nothing for it to do"));
  }
  for (const char* alone : {"", "[]", "{}", R"({"cluster":{"worker":["a:1"]}})",
                            R"({"cluster":{},"task":{"type":"worker","index":0}})"}) {
    const auto none = find({{"TF_CONFIG", alone}});
    ASSERT_TRUE(none.ok()) << none.error().message;
    EXPECT_FALSE(none->has_value()) << alone;
  }
  for (const char* text :
       {R"({"cluster":1})", R"({"cluster":{},"task":[]})",
        R"({"cluster":{"worker":"a:1"},"task":{"type":"worker","index":0}})",
        R"({"cluster":{"worker":[3]},"task":{"type":"worker","index":0}})",
        R"({"cluster":{"worker":["a","b"]},"task":{"type":"worker","index":0}})",
        R"({"cluster":{"worker":["a:65534","b:1"]},"task":{"type":"worker","index":0}})"}) {
    const auto none = find({{"TF_CONFIG", text}});
    ASSERT_FALSE(none.ok()) << text;
    EXPECT_THAT(none.error().message, HasSubstr("TF_CONFIG in the environment is not"));
  }
}

TEST(Allocation, VariablesThatContradictEachOtherAreRefusedByName) {
  const auto expect = [](const Environment& environment, const std::string& part) {
    const auto refused = find(environment);
    ASSERT_FALSE(refused.ok()) << part;
    EXPECT_EQ(refused.error().kind, runtime::ErrorKind::kUsage);
    EXPECT_THAT(refused.error().message, HasSubstr(part));
  };
  expect(with(kSlurm, "SLURM_PROCID", "8"), "SLURM_PROCID is 8 and SLURM_STEP_NUM_TASKS is 8");
  expect(with(kSlurm, "SLURM_PROCID", "many"),
         "SLURM_PROCID in the environment is no number: many");
  expect(without(kSlurm, "SLURM_STEP_NUM_TASKS"), "has no SLURM_STEP_NUM_TASKS");
  expect(with(kRanks, "WORLD_SIZE", "100000"), "up to 4096");
  expect(without(kSlurm, "SLURM_JOB_ID"), "no SLURM_JOB_ID");
  expect(without(kOpenMpi, "PMIX_NAMESPACE"), "no PMIX_NAMESPACE");
  expect(with(kRanks, "MASTER_PORT", "high"), "MASTER_PORT");
  expect(with(kRanks, "MASTER_PORT", "65534"), "MASTER_PORT in the environment is 65534");
  expect({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"PMI_FD", "999"}},
         "PMI_FD");
}

// The other end of PMI_FD, which answers with these lines.
TEST(Allocation, AsksMpichForTheNameOfItsJob) {
  const auto ask = [](const std::vector<std::string>& answers) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    std::thread mpiexec([&] {
      for (const std::string& answer : answers) {
        std::string question;
        for (char next = 0; next != '\n' && ::read(ends[1], &next, 1) == 1;) question += next;
        EXPECT_EQ(::write(ends[1], answer.data(), answer.size()),
                  static_cast<ssize_t>(answer.size()));
      }
      ::shutdown(ends[1], SHUT_RDWR);
    });
    auto name = name_of_pmi_job(ends[0]);
    mpiexec.join();
    for (const int end : ends) ::close(end);
    return name;
  };
  const std::string hello = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
  const auto name = ask({hello, "cmd=my_kvsname kvsname=kvs_17_0\n", "cmd=finalize_ack\n"});
  ASSERT_TRUE(name.ok()) << name.error().message;
  EXPECT_EQ(*name, "kvs_17_0");
  EXPECT_FALSE(ask({hello, "cmd=what\n"}).ok());
  EXPECT_FALSE(ask({std::string(5000, 'x')}).ok());
  EXPECT_FALSE(ask({}).ok());
}

class Meetings : public testing::Test {
 protected:
  Result<Meeting> open(const Allocation& allocation, const std::optional<std::string>& keys = {},
                       const std::optional<std::string>& listen = {}) {
    return open_meeting(allocation, keys, listen, prefix(), disk_);
  }
  Result<Meeting> find(const Allocation& allocation, runtime::Duration patience) {
    const runtime::SteadyClock clock;
    return find_meeting(allocation, std::nullopt, prefix(), clock, clock.now() + patience,
                        runtime::Log::silent());
  }
  std::string prefix() const { return folder_ / "runs/."; }

  TemporaryFolder folder_;
  runtime::FileDisk disk_;
};

TEST_F(Meetings, AreFoundInTheFolderThatAllSeeAsLongAsTheFirstIsThere) {
  const Allocation first{.name = "Slurm step 17.2", .rank = 0, .size = 2};
  const Allocation second{.name = "Slurm step 17.2", .rank = 1, .size = 2};
  const auto meeting = open(first);
  ASSERT_TRUE(meeting.ok()) << meeting.error().message;
  EXPECT_THAT(meeting->listen, StartsWith("0.0.0.0:"));
  const auto keys = read_key_folder(*meeting->keys);
  ASSERT_TRUE(keys.ok()) << keys.error().message;
  EXPECT_EQ(*meeting->keys, folder_ / "runs/.Slurm-step-17.2");
  EXPECT_FALSE(find(second, {}).ok()) << "it has not left its note";
  {
    MeetingNote note(*meeting);
    ASSERT_TRUE(note.leave(disk_).ok());
    const auto found = find(second, {});
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ(found->keys, meeting->keys);
    EXPECT_EQ(found->dial, meeting->dial) << "both are on this machine";
    EXPECT_THAT(found->dial, testing::EndsWith("#" + keys->own.public_key));
  }
  EXPECT_FALSE(find(second, {}).ok());
  // Another one of the same name makes other keys, and one that has these goes on with them.
  const auto resumed = open(first, meeting->keys);
  ASSERT_TRUE(resumed.ok()) << resumed.error().message;
  EXPECT_THAT(resumed->dial, testing::EndsWith("#" + keys->own.public_key));
  const auto again = open(first);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_THAT(again->dial, testing::Not(testing::EndsWith("#" + keys->own.public_key)));
}

TEST_F(Meetings, AreWhereTheTopologySays) {
  const auto meeting =
      open({.name = "mpirun 5", .rank = 0, .size = 2}, std::nullopt, "127.0.0.1:29600");
  ASSERT_TRUE(meeting.ok()) << meeting.error().message;
  EXPECT_EQ(meeting->listen, "127.0.0.1:29600");
  MeetingNote note(*meeting);
  ASSERT_TRUE(note.leave(disk_).ok());
  const auto found = find({.name = "mpirun 5", .rank = 1, .size = 2}, {});
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_THAT(found->dial, StartsWith("tcp://127.0.0.1:29600#"));
}

TEST_F(Meetings, AreWaitedForAndMissedByName) {
  const Allocation second{.name = "mpirun 5", .rank = 1, .size = 2};
  const auto missed = find(second, std::chrono::milliseconds(10));
  ASSERT_FALSE(missed.ok());
  EXPECT_EQ(missed.error().kind, runtime::ErrorKind::kLostPeers);
  EXPECT_THAT(missed.error().message, HasSubstr("runs/.mpirun-5/address"));
  EXPECT_THAT(missed.error().message, HasSubstr("MASTER_ADDR"));
  const auto meeting = open({.name = "mpirun 5", .rank = 0, .size = 2});
  ASSERT_TRUE(meeting.ok()) << meeting.error().message;
  MeetingNote note(*meeting);
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_TRUE(note.leave(disk_).ok());
  });
  const auto found = find(second, std::chrono::minutes(1));
  late.join();
  EXPECT_TRUE(found.ok()) << found.error().message;
}

TEST_F(Meetings, AtANamedHostNeedKeysThatAllHave) {
  Allocation first{
      .name = "node-a:29500", .rank = 0, .size = 2, .host = "192.0.2.1", .port = 29500};
  const auto refused = open(first);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("cluster.keys"));
  ASSERT_TRUE(make_key_folder(folder_ / "keys", "all", disk_).ok());
  const auto meeting = open(first, folder_ / "keys");
  ASSERT_TRUE(meeting.ok()) << meeting.error().message;
  EXPECT_EQ(meeting->listen, "0.0.0.0:29500");
  EXPECT_EQ(meeting->neighbours, "tcp://192.0.2.1:0");
  EXPECT_THAT(meeting->dial, StartsWith("tcp://192.0.2.1:29500#"));
  first.host = "localhost";
  const auto here = open(first);
  ASSERT_TRUE(here.ok()) << here.error().message;
  EXPECT_EQ(here->listen, "127.0.0.1:29500");
  EXPECT_EQ(here->dial, "tcp://127.0.0.1:29500");
  EXPECT_FALSE(here->keys.has_value());
}

}  // namespace
}  // namespace troupe::launch
