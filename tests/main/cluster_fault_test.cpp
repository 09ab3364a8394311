// Members that compute otherwise than the others: by memory that changes a bit, and by another
// instruction set.

#include <gmock/gmock.h>

#include <memory>

#include <fmt/format.h>

#include "model/backend.h"
#include "pipeline/steps/micro_batch.h"
#include "pipeline/steps/spot_check.h"
#include "tests/main/cluster_run.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint32_t kMembers = 3;
constexpr std::uint32_t kFaulty = 2;
constexpr std::uint32_t kSlots = 4;
const Words kOneReplica{"--set", "actors.replica.count=1", "--set",
                        "cluster.failure.check_every=4"};

std::string variable(const char* name, const std::string& value) {
  return fmt::format("{}={}", name, value);
}

// The words of `program` with a variable in its environment.
Words with_environment(const std::string& variable, const std::string& program, Words words) {
  words.insert(words.begin(), {"/usr/bin/env", variable, program});
  return words;
}

class ClusterFault : public ClusterRun {
 protected:
  struct Place {
    std::uint64_t iteration = 0;
    pipeline::SpotCheck check;
    std::uint64_t step() const { return iteration * kSlots + check.slot; }
  };

  // The first spot check from there on that the faulty member has a part in: as the owner of the
  // micro-batch, or as the one that computes it again.
  Place checked_place(std::uint64_t from, bool as_owner) const {
    pipeline::SpotChecks checks{4, 1, kSlots, 1, {}, {}};
    for (std::uint32_t member = 0; member < kMembers; ++member) checks.members.push_back(member);
    checks.owners = pipeline::assign_micro_batches(4, std::vector<std::uint64_t>(kMembers, 1));
    for (std::uint64_t iteration = from;; ++iteration) {
      const auto check = checks.of(iteration);
      if (check && (as_owner ? check->owner : check->witness) == kFaulty) {
        return {iteration, *check};
      }
    }
  }

  // A run whose last member has a bit flipped there; the head's end.
  ProcessEnd run_with_flip(const std::string& name, const Place& place,
                           const std::string& reduction = "exact") const {
    const std::string address = fmt::format("127.0.0.1:{}", free_port());
    Process head(command(head_words(name, address, kMembers,
                                    until_iteration(20, {"--json"}) + kOneReplica +
                                        Words{"--set", "actors.reducer.reduction=" + reduction})));
    const std::string flip =
        fmt::format("{} {} {}", place.iteration, place.check.slot, place.check.micro_batch);
    std::vector<std::unique_ptr<Process>> members;
    for (std::uint32_t i = 0; i < kMembers; ++i) {
      const Words words{"join", address, "--node", fmt::format("member.{}", i)};
      members.push_back(std::make_unique<Process>(
          with_environment(variable("TROUPE_TEST_FLIP", flip),
                           i == kFaulty ? TROUPE_FLIPPED_BIT : TROUPE_BINARY, words)));
    }
    for (const auto& member : members) EXPECT_FALSE(member->wait().timed_out);
    return head.wait();
  }
};

TEST_F(ClusterFault, BitFlippedInOneMembersGradientIsCaughtAndTheTwoThatDifferAreNamed) {
  for (const std::string reduction : {"exact", "int8"}) {
    const Place place = checked_place(6, reduction == "exact");
    const ProcessEnd end = run_with_flip(reduction, place, reduction);
    EXPECT_EQ(end.exit_code, 6) << end.err;
    EXPECT_THAT(end.err,
                HasSubstr(fmt::format(
                    "step {} (iteration {}, slot {}): micro-batch {} gave two results",
                    place.step(), place.iteration, place.check.slot, place.check.micro_batch)));
    EXPECT_THAT(end.err, HasSubstr(fmt::format("on member.{} and member.{};", place.check.owner,
                                               place.check.witness)));
  }
}

// The test above catches the bit, not the program that flips it.
TEST_F(ClusterFault, MemberWhoseBitIsNeverFlippedGivesTheHashOfOneProcess) {
  Place never = checked_place(0, true);
  never.iteration = 1000;
  const ProcessEnd end = run_with_flip("a", never);
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(last_line(end)["state_hash"].text(), hash_of("alone", until_iteration(20)));
}

// One member joins with oneDNN kept from the instructions that this host has.
class ClusterInstructions : public ClusterRun {
 protected:
  void SetUp() override {
    if (own_class().find(" sse41,") != std::string::npos ||
        own_class().find(" avx,") != std::string::npos) {
      GTEST_SKIP() << "no instructions to do without: " << own_class();
    }
  }

  const std::string& own_class() const { return own_class_; }
  // As the library's variable has it, and as the class names it.
  std::string limit() const {
    return own_class_.find(" avx2,") != std::string::npos ? "SSE41" : "AVX2";
  }
  std::string limited_name() const { return limit() == "AVX2" ? " avx2," : " sse41,"; }

  std::unique_ptr<Process> head(const std::string& setting) const {
    return std::make_unique<Process>(
        command(head_words("a", address_, 2, {"--json", "--set", setting})));
  }
  // With a member that has narrower vectors than the other.
  void expect_equal_hash(const std::string& setting) const {
    const auto waiting = head(setting);
    Process limited(narrow_member()), other(member());
    EXPECT_EQ(limited.wait().exit_code, 0);
    EXPECT_EQ(other.wait().exit_code, 0);
    const ProcessEnd end = waiting->wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    EXPECT_EQ(last_line(end)["state_hash"].text(), hash_of("alone", {"--set", setting}));
  }
  Words member() const { return command({"join", address_}); }
  Words limited_member() const {
    return with_environment(variable("ONEDNN_MAX_CPU_ISA", limit()), TROUPE_BINARY,
                            {"join", address_});
  }
  Words narrow_member() const { return {TROUPE_NARROW_VECTORS, "join", address_}; }

 private:
  const std::string own_class_ = model::make_cpu_backend()->numerics_class();
  const std::string address_ = fmt::format("127.0.0.1:{}", free_port());
};

TEST_F(ClusterInstructions, MemberOfAnotherInstructionSetIsRefusedSayingWhatDiffers) {
  const auto waiting = head("model.kernels=fastest");
  expect_refused(Process(limited_member()).wait(), 2,
                 {"another numerics class", own_class(), limited_name()});
  // The run does without it and is none the worse.
  Process first(member()), second(member());
  EXPECT_EQ(first.wait().exit_code, 0);
  EXPECT_EQ(second.wait().exit_code, 0);
  const ProcessEnd end = waiting->wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, AllOf(HasSubstr("was refused"), HasSubstr("another numerics class")));
  EXPECT_EQ(last_line(end)["state_hash"].text(),
            hash_of("alone", {"--set", "model.kernels=fastest"}));
}

TEST_F(ClusterInstructions, WithPortableKernelsAMemberWithNarrowerVectorsIsLetInAndTheHashIsEqual) {
  expect_equal_hash("model.kernels=portable");
}

// On a host without them both members are such.
TEST_F(ClusterInstructions, WithBf16AMemberWithoutItsInstructionsIsLetInAndTheHashIsEqual) {
  expect_equal_hash("model.precision=bf16");
  EXPECT_NE(hash_of("bf16", {"--set", "model.precision=bf16"}), hash_of("fp32"));
}

}  // namespace
}  // namespace troupe
