// Runs on a device. OpenCL's driver for the processor (PoCL) stands in where there is no card.

#include <gmock/gmock.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/main/cluster_run.h"
#include "tests/support/tested_device.h"

namespace troupe {
namespace {

using testing::HasSubstr;

const std::string kDevice = tested_device();
const Words kOnDevice{"--set", "actors.replica.device=" + kDevice};

class DeviceRun : public ClusterRun {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer does not see how PoCL's threads wait for each other";
#endif
  }
  // The fields of its validations.
  std::vector<std::string> validations(const std::string& name) const {
    std::vector<std::string> found;
    std::istringstream lines(read_text(path(name + "/metrics.jsonl")));
    for (std::string line; std::getline(lines, line);) {
      if (line.find(R"("kind":"validation")") == std::string::npos) continue;
      found.push_back(line.substr(line.find(R"("fields")")));
    }
    return found;
  }
};

TEST_F(DeviceRun, HasTheHashOfTheProcessorWithAnyNumberOfReplicas) {
  const Words twelve = until_iteration(12);
  const std::string hash = hash_of("cpu", twelve);
  EXPECT_EQ(hash_of("device", twelve + kOnDevice), hash);
  EXPECT_EQ(hash_of("two", twelve + kOnDevice + Words{"--set", "actors.replica.count=2"}), hash);
  EXPECT_EQ(hash_of("three", twelve + kOnDevice + Words{"--set", "actors.replica.count=3"}), hash);
}

TEST_F(DeviceRun, HasTheHashOfTheProcessorInBf16) {
  const Words six = until_iteration(6, {"--set", "model.precision=bf16"});
  const std::string hash = hash_of("cpu", six);
  EXPECT_EQ(hash_of("device", six + kOnDevice), hash);
  EXPECT_NE(hash_of("fp32", until_iteration(6)), hash);
}

TEST_F(DeviceRun, HasTheHashOfTheProcessorInALossyReduction) {
  const Words six = until_iteration(
      6, {"--set", "actors.reducer.reduction=bf16", "--set", "actors.replica.count=2"});
  EXPECT_EQ(hash_of("device", six + kOnDevice), hash_of("cpu", six));
}

TEST_F(DeviceRun, HasTheHashOfTheProcessorWithWorkersThatTrainAlone) {
  const Words ten =
      until_iteration(10, {"--set", "train.strategy={kind: local, workers: 4, steps: 3}", "--set",
                           "train.optimiser={g: adam, d: adam}"});
  const std::string hash = hash_of("cpu", ten);
  EXPECT_EQ(hash_of("device", ten + kOnDevice), hash);
  EXPECT_EQ(hash_of("two", ten + kOnDevice + Words{"--set", "actors.replica.count=2"}), hash);
}

TEST_F(DeviceRun, HasTheHashOfTheProcessorWhereTheDiscriminatorIsToldTheEnergy) {
  const Words six = until_iteration(
      6, {"--set", "model.discriminator.conditions=[energy]", "--set",
          "model.discriminator.layers.4=flatten", "--set",
          "model.discriminator.layers.5={concatenate: {with: [conditions], name: features}}",
          "--set", "train.schedule=[d_real, d_both, g]"});
  const std::string hash = hash_of("cpu", six);
  EXPECT_EQ(hash_of("device", six + kOnDevice), hash);
  EXPECT_EQ(hash_of("two", six + kOnDevice + Words{"--set", "actors.replica.count=2"}), hash);
}

TEST_F(DeviceRun, HasTheHashOfTheProcessorWhereMicroBatchesShareStatistics) {
  const Words six = until_iteration(6, kSharedNorms);
  const std::string hash = hash_of("cpu", six);
  EXPECT_EQ(hash_of("device", six + kOnDevice), hash);
  EXPECT_EQ(hash_of("two", six + kOnDevice + Words{"--set", "actors.replica.count=2"}), hash);
  EXPECT_NE(hash_of("apart", until_iteration(6)), hash);
}

// Two replicas share seven micro-batches, so that one of them never fills its groups.
TEST_F(DeviceRun, HasTheHashOfTheProcessorWithGroupsThatAreNotFull) {
  const Words seven = until_iteration(4, {"--set", "train.micro_batches=7"});
  const std::string hash = hash_of("cpu", seven);
  EXPECT_EQ(hash_of("two", seven + kOnDevice + Words{"--set", "actors.replica.count=2"}), hash);
  EXPECT_EQ(hash_of("four", seven + kOnDevice + Words{"--set", "actors.replica.count=4"}), hash);
}

TEST_F(DeviceRun, ValidatesAndGeneratesAsTheProcessorDoes) {
  const Words words = until_iteration(11, {"--set", "actors.validator.every=1 epoch"});
  summary_of("cpu", words);
  summary_of("device", words + kOnDevice);
  EXPECT_GE(validations("cpu").size(), 1U);
  EXPECT_EQ(validations("cpu"), validations("device"));
  std::string said;
  const auto made = [&](const std::string& name, const Words& devices) {
    const Words words{"generate", checkpoint("device", 0), "--events", "40", "--out", path(name)};
    const ProcessEnd end = call(words + devices);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    said = end.err;
    return read_text(path(name));
  };
  const std::string of_processor = made("cpu.h5", {"--device", "cpu"});
  EXPECT_EQ(made("device.h5", {"--device", kDevice}), of_processor);
  EXPECT_EQ(made("both.h5", {"--device", kDevice, "--device", "cpu"}), of_processor);
  EXPECT_THAT(said, HasSubstr("(20 by " + kDevice + ", 20 by cpu)"));
  const JsonValue told =
      last_line(call({"generate", checkpoint("device", 0), "--events", "40", "--out",
                      path("told.h5"), "--device", kDevice, "--device", "cpu", "--json"}));
  const JsonValue::List& devices = told["devices"].list();
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0]["device"].text(), kDevice);
  EXPECT_EQ(devices[1]["device"].text(), "cpu");
  EXPECT_EQ(devices[1]["events"].integer(), 20);
}

TEST_F(DeviceRun, GoesOnFromACheckpointOfTheProcessorAndTheOtherWayRound) {
  const std::string hash = hash_of("whole", until_iteration(12));
  summary_of("there", until_iteration(5, kOnDevice));
  EXPECT_EQ(resumed("there", until_iteration(12))["state_hash"].text(), hash);
  summary_of("back", until_iteration(5));
  EXPECT_EQ(resumed("back", until_iteration(12, kOnDevice))["state_hash"].text(), hash);
}

// The group is that of the device's own share, and the rest is a group of its own.
TEST_F(DeviceRun, MemberWithADeviceTakesOverWhatOneWithoutLeavesBehind) {
  const std::string address = fmt::format("127.0.0.1:{}", free_port());
  Process head(command(head_words("a", address, 2, kEndlessRun)));
  const auto with = join({address, "--device", kDevice});
  const auto without = join({address});
  wait_until_training(head, 40);
  without->send(SIGKILL);
  ASSERT_TRUE(wait_until_said(head, "going on without member.")) << log();
  wait_until_training(head, steps() + 40);
  stop_and_expect_whole(head);
  const ProcessEnd end = with->wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("device " + kDevice + " ("));
}

TEST_F(DeviceRun, MemberWithADeviceJoinsOneWithoutAndItsDeathCostsNoBit) {
  const std::string address = fmt::format("127.0.0.1:{}", free_port());
  Process head(command(head_words("a", address, 1, kEndlessRun)));
  Process first(command({"join", address}));
  wait_until_training(head);
  const auto second = join({address, "--device", kDevice});
  ASSERT_TRUE(wait_until_told(head, R"("joined":["member.)")) << log();
  wait_until_training(head, steps() + 80);
  second->send(SIGKILL);
  ASSERT_TRUE(wait_until_said(head, "going on without member.")) << log();
  wait_until_training(head, steps() + 40);
  stop_and_expect_whole(head);
  EXPECT_EQ(first.wait().exit_code, 0);
}

TEST_F(DeviceRun, OneThatIsNotThereIsRefusedAndTold) {
  const Words none{"--set", "actors.replica.device=opencl:7"};
  expect_refused(run("a", none), 3,
                 {"actors.replica.device", "there is no device opencl:7", "troupe devices"});
  EXPECT_FALSE(std::filesystem::exists(path("a")));
  // The topology may be meant for another machine.
  const ProcessEnd there = call(Words{"check", path("toy.yaml")} + kOnDevice);
  EXPECT_EQ(there.exit_code, 0) << there.err;
  EXPECT_THAT(there.out,
              testing::ContainsRegex("device " + kDevice + " \\(.*\\): groups of up to 2"));
  const ProcessEnd checked = call(Words{"check", path("toy.yaml")} + none);
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_THAT(checked.err, HasSubstr("there is no device opencl:7"));
}

// oneDNN's kernels are for fp32.
TEST_F(DeviceRun, FastestKernelsOfAProcessorArePortableInBf16) {
  const Words six = until_iteration(6, {"--set", "model.precision=bf16"});
  EXPECT_EQ(hash_of("fastest", six + Words{"--set", "model.kernels=fastest"}),
            hash_of("portable", six));
}

TEST_F(DeviceRun, FastestKernelsHaveOneHashForAnyNumberOfReplicasAndAClassOfTheirOwn) {
  const Words fastest = until_iteration(6, {"--set", "model.kernels=fastest"});
  const std::string hash = hash_of("one", fastest + kOnDevice);
  EXPECT_EQ(hash_of("three", fastest + kOnDevice + Words{"--set", "actors.replica.count=3"}), hash);
  const ProcessEnd check =
      call(Words{"check", path("toy.yaml"), "--set", "model.kernels=fastest"} + kOnDevice);
  if (kDevice == "opencl:0") {
    // PoCL has no tensor cores, and the class of portable kernels.
    EXPECT_THAT(check.out, testing::ContainsRegex("device .*, portable float32 "));
    EXPECT_EQ(hash, hash_of("portable", until_iteration(6)));
    return;
  }
  EXPECT_THAT(check.out, testing::ContainsRegex("device .*, fastest "));
  const ProcessEnd elsewhere =
      call(Words{"run", "--resume", path("one"), "--set", "actors.replica.device=cpu"});
  EXPECT_EQ(elsewhere.exit_code, 4) << elsewhere.err;
  EXPECT_THAT(elsewhere.err, testing::ContainsRegex("another numerics class: fastest "));
}

// PoCL has as much memory as it is told, in GiB.
TEST_F(DeviceRun, GroupsAreHalvedUntilTheyFitAndWhatDoesNotFitIsRefused) {
  if (kDevice != "opencl:0") GTEST_SKIP() << "a card has the memory that it has";
  ::setenv("POCL_MEMORY_LIMIT", "1", 1);
  const auto check = [](const std::string& model, const std::string& events) {
    return call(Words{"check", model, "--set", "train.micro_batches=32", "--set",
                      "train.micro_batch=" + events, "--set", "actors.replica.count=1"} +
                kOnDevice);
  };
  EXPECT_THAT(check("toy", "1").out, HasSubstr("groups of up to 32 micro-batches"));
  EXPECT_THAT(check("gan3d_25", "8").out, HasSubstr("groups of up to 2 micro-batches"));
  const ProcessEnd refused = check("gan3d_51", "64");
  EXPECT_THAT(refused.out + refused.err,
              testing::ContainsRegex("opencl:0 has [0-9]+ MiB to use, [0-9]+ MiB at once, and this "
                                     "model needs [0-9]+ MiB and [0-9]+ MiB at once"));
  ::unsetenv("POCL_MEMORY_LIMIT");
}

TEST_F(DeviceRun, DevicesAreListedWithWhatTheyPromise) {
  const ProcessEnd listed = call({"devices"});
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr(kDevice + "  "));
  EXPECT_THAT(listed.out, HasSubstr("kernels: portable, the bits of any processor"));
  const JsonValue devices = last_line(call({"devices", "--json"}))["devices"];
  std::vector<std::string> words;
  for (const JsonValue& each : devices.list()) words.push_back(each["device"].text());
  EXPECT_THAT(words, testing::Contains(kDevice));
}

// The driver is found through a folder that the loader looks into.
TEST_F(DeviceRun, WithoutADriverThereIsTheProcessor) {
  if (kDevice != "opencl:0") GTEST_SKIP() << "a card's driver is not hidden";
  std::filesystem::create_directory(path("none"));
  ::setenv("OCL_ICD_VENDORS", path("none").c_str(), 1);
  const ProcessEnd listed = call({"devices"});
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("no OpenCL driver shows a device"));
  expect_refused(run("a", kOnDevice), 3, {"no OpenCL driver shows a device"});
  expect_refused(run("b", {"--set", "actors.replica.device=gpu"}), 3,
                 {"there is no GPU on this machine that can compute"});
  ::unsetenv("OCL_ICD_VENDORS");
}

// Runs on a library that stands in for NVIDIA's driver (variants/stand_in_cuda.cpp).
class StandInCard : public ClusterRun {
 protected:
  StandInCard() {
    ::setenv("LD_LIBRARY_PATH", TROUPE_STAND_IN_CUDA, 1);
    ::setenv("STAND_IN_LOG", path("calls").c_str(), 1);
    ::setenv("XDG_CACHE_HOME", path("cache").c_str(), 1);
  }
  ~StandInCard() override {
    for (const char* name : {"LD_LIBRARY_PATH", "STAND_IN_LOG", "STAND_IN_FAIL", "STAND_IN_FUSES",
                             "STAND_IN_CARDS", "XDG_CACHE_HOME"}) {
      ::unsetenv(name);
    }
  }
  static void let_fail(const char* rule) { ::setenv("STAND_IN_FAIL", rule, 1); }
  ProcessEnd train(const std::string& name = "a") const {
    return run(name, until_iteration(3, {"--set", "actors.replica.device=gpu", "--set",
                                         "actors.replica.count=2"}));
  }
  // How often a function was called, by the stand-in's account.
  int calls(const std::string& function) const {
    std::istringstream lines(read_text(path("calls")));
    std::string name;
    for (int count = 0; lines >> name >> count;) {
      if (name == function) return count;
    }
    return 0;
  }
};

TEST_F(StandInCard, IsListedAsNvidiasDriverDescribesIt) {
  EXPECT_THAT(call({"devices"}).out,
              HasSubstr("cuda:0  stand-in (GPU), 1.1 GB, 132 units, CUDA 13.0, sm_90\n"));
  let_fail("cuInit:1:3");
  EXPECT_THAT(call({"devices"}).out, HasSubstr("NVIDIA's driver does not start: some error"));
}

// It computes nothing, but it watches over memory and the order of calls.
TEST_F(StandInCard, IsChosenAndGetsBackAllMemory) {
  const ProcessEnd end = train();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("device cuda:0 (stand-in): groups of up to 2 micro-batches"));
  EXPECT_GT(calls("cuLaunchKernel"), 100);
  EXPECT_GT(calls("cuMemAlloc"), 10);
  EXPECT_EQ(calls("cuMemAlloc"), calls("cuMemFree"));
  EXPECT_GT(calls("cuMemAllocHost"), 0);
  EXPECT_EQ(calls("cuMemAllocHost"), calls("cuMemFreeHost"));
  EXPECT_EQ(calls("cuEventCreate"), calls("cuEventDestroy"));
  EXPECT_EQ(calls("left"), 0);
  EXPECT_EQ(calls("cuDevicePrimaryCtxRetain"), calls("cuDevicePrimaryCtxRelease"));
  EXPECT_EQ(calls("nvrtcCreateProgram"), calls("nvrtcDestroyProgram"));
}

TEST_F(StandInCard, CompilesOnceAndAgainWhereTheCacheIsDamaged) {
  const std::string kept = path("cache/troupe/sm_90.cubin");
  for (const int compiled : {1, 0}) {
    ASSERT_EQ(train().exit_code, 0);
    EXPECT_EQ(calls("nvrtcCompileProgram"), compiled);
    std::filesystem::remove_all(path("a"));
  }
  const std::string sound = read_text(kept);
  for (const std::string& damaged :
       {sound.substr(0, sound.size() - 1), sound + "x", std::string("x"), std::string()}) {
    write_text(kept, damaged);
    ASSERT_EQ(train().exit_code, 0);
    EXPECT_EQ(calls("nvrtcCompileProgram"), 1);
    EXPECT_EQ(read_text(kept), sound);
    std::filesystem::remove_all(path("a"));
  }
  // As of another program.
  write_text(kept, std::string(8, '0') + sound.substr(8));
  ASSERT_EQ(train().exit_code, 0);
  EXPECT_EQ(calls("nvrtcCompileProgram"), 1);
}

TEST_F(StandInCard, WithoutAPlaceToKeepTheProgramItTrains) {
  ::setenv("XDG_CACHE_HOME", "/dev/null", 1);
  EXPECT_EQ(train().exit_code, 0);
  EXPECT_GT(calls("nvrtcCompileProgram"), 0);
}

TEST_F(StandInCard, WithTheMostFreeMemoryIsChosen) {
  ::setenv("STAND_IN_CARDS", "3", 1);
  EXPECT_THAT(train().err, HasSubstr("device cuda:2 (stand-in)"));
}

TEST_F(StandInCard, WorkersTakeTurnsAtTheCardsAndTellOfThem) {
  ::setenv("STAND_IN_CARDS", "2", 1);
  Process process(command(
      run_words("a", kEndlessRun + Words{"--workers", "3", "--set", "actors.replica.device=gpu"})));
  wait_until_training(process);
  const auto tells = [&](int member, int card) {
    std::istringstream lines(read_text(path("a/nodes.json")));
    for (std::string line; std::getline(lines, line);) {
      if (line.find(fmt::format(R"("name":"member.{}")", member)) == std::string::npos) continue;
      return line.find(fmt::format(R"("device":"cuda:{} )", card)) != std::string::npos;
    }
    return false;
  };
  for (const auto& [member, card] : {std::pair{0, 0}, {1, 1}, {2, 0}}) {
    EXPECT_TRUE(process.wait_until([&, m = member, c = card] { return tells(m, c); })) << member;
  }
  const std::string said = stop(process).err;
  for (const auto& [member, card] : {std::pair{0, 0}, {1, 1}, {2, 0}}) {
    EXPECT_THAT(said, testing::ContainsRegex(fmt::format(
                          "member.{} [^\n]*device cuda:{} [(]stand-in[)]", member, card)));
  }
}

TEST_F(StandInCard, FailuresEndTheProcessWithTheDriversReason) {
  let_fail("cuMemAlloc:20:2");
  expect_refused(train(), 1, {"a device has failed: memory of a device", "out of memory"});
  let_fail("cuLaunchKernel:200:719");
  expect_refused(train("b"), 1, {"a device has failed: kernel ", "unspecified launch failure"});
}

TEST_F(StandInCard, OneThatCannotKeepThePromiseIsRefused) {
  let_fail("nvrtcCompileProgram:1:6");
  expect_refused(train(), 3, {"NVRTC cannot compile the kernels for", "its log"});
  ::unsetenv("STAND_IN_FAIL");
  ::setenv("STAND_IN_FUSES", "1", 1);
  expect_refused(train(), 3, {"cuda:0 (stand-in): its arithmetic is not that of the processor"});
}

}  // namespace
}  // namespace troupe
