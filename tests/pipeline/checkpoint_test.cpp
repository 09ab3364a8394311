#include "pipeline/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "model/exact_sum.h"
#include "pipeline/data/hdf5_handle.h"
#include "pipeline/leaving/warm_start.h"
#include "pipeline/steps/turn_update.h"
#include "runtime/base/disk.h"
#include "tests/pipeline/data_fixture.h"
#include "tests/pipeline/state_example.h"
#include "tests/support/temporary_folder.h"

namespace troupe::pipeline {
namespace {

using runtime::Buffer;
using ::testing::HasSubstr;

Checkpoint example_checkpoint(const StateExample& example) {
  Checkpoint checkpoint;
  checkpoint.state = filled_state(example);
  checkpoint.topology = "name: example\nmodel: {zoo: toy}  # \xc3\xa9\n";
  checkpoint.topology_hash = {7, 8};
  checkpoint.model = "toy";
  checkpoint.origin = "both networks from a.h5";
  return checkpoint;
}

Buffer encode(const StateExample& example) {
  return encode_checkpoint(example_checkpoint(example), example.layout, example.options).value();
}

class CheckpointFile : public ::testing::Test {
 protected:
  // Why this model or these options refuse the example's file.
  std::string refusal(const StateExample& other) const {
    const auto result =
        decode_checkpoint(encode(example_), "run/a.h5", other.layout, other.options);
    if (result.ok()) return "";
    EXPECT_EQ(result.error().kind, runtime::ErrorKind::kData);
    EXPECT_THAT(result.error().message, HasSubstr("run/a.h5: "));
    return result.error().message;
  }

  StateExample example_ = state_example();
};

TEST_F(CheckpointFile, RoundTripIsBitIdentical) {
  const Checkpoint written = example_checkpoint(example_);
  const Buffer file = encode(example_);
  const auto read = decode_checkpoint(file, "a.h5", example_.layout, example_.options);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(hash_of_state(read->state), hash_of_state(written.state));
  EXPECT_EQ(read->state_hash, hash_of_state(written.state));
  EXPECT_EQ(read->state.generator.optimiser_arrays, written.state.generator.optimiser_arrays);
  EXPECT_EQ(read->state.discriminator.moving, written.state.discriminator.moving);
  EXPECT_EQ(read->state.scales, written.state.scales);
  EXPECT_EQ(read->state.numerics_class, written.state.numerics_class);
  EXPECT_EQ(read->topology, written.topology);
  EXPECT_EQ(read->topology_hash, written.topology_hash);
  EXPECT_EQ(read->model, written.model);
  EXPECT_EQ(read->origin, written.origin);
  const auto again = encode_checkpoint(*read, example_.layout, example_.options);
  EXPECT_TRUE(std::ranges::equal(again->bytes(), file.bytes()));
}

TEST_F(CheckpointFile, SignsOfZeroDenormalsAndExtremesSurvive) {
  Checkpoint checkpoint = example_checkpoint(example_);
  checkpoint.state.generator.weights[0] = -0.0f;
  checkpoint.state.generator.weights[1] = 0x1p-149f;
  checkpoint.state.generator.weights[2] = -0x1.fffffep127f;
  checkpoint.state.epoch_loss[0] = -0.0;
  checkpoint.state.epoch_loss[1] = 0x1p-1074;
  checkpoint.state.iteration = UINT64_MAX;
  checkpoint.state.scales[0][0] = model::kNoExponent;
  checkpoint.state.numerics_class = "";
  checkpoint.topology = "";
  const auto file = encode_checkpoint(checkpoint, example_.layout, example_.options);
  const auto read = decode_checkpoint(*file, "a.h5", example_.layout, example_.options);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(hash_of_state(read->state), hash_of_state(checkpoint.state));
  EXPECT_EQ(read->topology, "");
}

TEST_F(CheckpointFile, TrainingGoesOnAsIfItHadNotStopped) {
  TrainingState kept = initial_state(example_.layout, example_.options, "class", {});
  for (std::uint32_t n = 0; n < 16; ++n) {
    Checkpoint checkpoint;
    checkpoint.state = kept;
    const auto file = encode_checkpoint(checkpoint, example_.layout, example_.options);
    TrainingState resumed =
        decode_checkpoint(*file, "a.h5", example_.layout, example_.options).value().state;
    const auto slot = example_.options.schedule[kept.slot];
    for (TrainingState* state : {&kept, &resumed}) {
      const auto record = reduce(example_, *state, random_contributions(example_, slot, n + 1));
      ASSERT_TRUE(apply(example_.layout, example_.options, record, *state).ok());
    }
    ASSERT_EQ(hash_of_state(resumed), hash_of_state(kept)) << "after step " << n;
  }
}

TEST_F(CheckpointFile, SameStateMakesTheSameBytes) {
  const Buffer first = encode(example_), second = encode(example_);
  EXPECT_TRUE(std::ranges::equal(first.bytes(), second.bytes()));
}

// As files of earlier builds are.
TEST_F(CheckpointFile, StateWithoutEarlyStoppingIsOfTheFirstVersion) {
  example_.options.stop.reset();
  const Buffer file = encode(example_);
  const auto summary = inspect_checkpoint(file, "a.h5");
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_EQ(summary->version, 1u);
  EXPECT_FALSE(summary->state.stopping.has_value());
  EXPECT_TRUE(decode_checkpoint(file, "a.h5", example_.layout, example_.options).ok());
}

TEST_F(CheckpointFile, StateWithAnOuterOptimiserIsOfTheThirdVersion) {
  StateExample local = example_;
  local.options.strategy = {StrategyKind::kLocal, 2, 3, {}};
  local.options = options_between_members(local.options, {});
  Checkpoint written;
  written.state = initial_state(local.layout, local.options, "class", {});
  written.state.iteration = 5;
  written.state.outer->velocity[kGenerator].front() = 0.25f;
  written.state.outer->velocity[kDiscriminator].back() = -0.5f;
  const Buffer file = encode_checkpoint(written, local.layout, local.options).value();
  EXPECT_EQ(inspect_checkpoint(file, "a.h5").value().version, 3u);
  const auto read = decode_checkpoint(file, "a.h5", local.layout, local.options);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(hash_of_state(read->state), hash_of_state(written.state));
  EXPECT_EQ(read->state.iteration, 5u);
  EXPECT_EQ(read->state.outer->velocity, written.state.outer->velocity);
  EXPECT_THAT(refusal(local),
              HasSubstr("trained without workers (train.strategy: local or tree), which "
                        "the topology has: give it the strategy"));
  const auto without = decode_checkpoint(file, "a.h5", example_.layout, example_.options);
  ASSERT_FALSE(without.ok());
  EXPECT_THAT(without.error().message, HasSubstr("a.h5: trained with workers"));
}

TEST_F(CheckpointFile, StateWithAMeanOfWeightsIsOfTheFourthVersion) {
  StateExample with = example_;
  with.options.mean = MeanOptions{};
  Checkpoint written;
  written.state = initial_state(with.layout, with.options, "class", {});
  written.state.mean->updates = 7;
  written.state.mean->network.weights.front() = 0.25f;
  written.state.mean->network.moving.back() = -0.5f;
  const Buffer file = encode_checkpoint(written, with.layout, with.options).value();
  EXPECT_EQ(inspect_checkpoint(file, "a.h5").value().version, 4u);
  const auto read = decode_checkpoint(file, "a.h5", with.layout, with.options);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(hash_of_state(read->state), hash_of_state(written.state));
  EXPECT_EQ(read->state.mean->updates, 7u);
  EXPECT_EQ(read->state.mean->network.weights, written.state.mean->network.weights);
  EXPECT_EQ(read->state.mean->network.moving, written.state.mean->network.moving);
  EXPECT_THAT(refusal(with), HasSubstr("trained without a mean of weights (train.mean), which the "
                                       "topology has: give it the train.mean"));
  const auto without = decode_checkpoint(file, "a.h5", example_.layout, example_.options);
  ASSERT_FALSE(without.ok());
  EXPECT_THAT(without.error().message, HasSubstr("a.h5: trained with a mean of weights"));
}

TEST_F(CheckpointFile, StateWithWhatMicroBatchesShareIsOfTheSixthVersion) {
  StateExample with = example_;
  with.options.schedule.insert(with.options.schedule.begin(), model::SlotKind::kStatistics);
  Checkpoint written;
  written.state = initial_state(with.layout, with.options, "class", {});
  written.state.slot = 1;
  for (auto& values : written.state.shared->values) {
    std::iota(values.begin(), values.end(), 1.0f);
  }
  const Buffer file = encode_checkpoint(written, with.layout, with.options).value();
  EXPECT_EQ(inspect_checkpoint(file, "a.h5").value().version, 6u);
  const auto read = decode_checkpoint(file, "a.h5", with.layout, with.options);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(hash_of_state(read->state), hash_of_state(written.state));
  EXPECT_EQ(read->state.shared->values, written.state.shared->values);
  EXPECT_THAT(refusal(with), HasSubstr("trained without batch norm over all micro-batches"));
  const auto without = decode_checkpoint(file, "a.h5", example_.layout, example_.options);
  ASSERT_FALSE(without.ok());
  EXPECT_THAT(without.error().message,
              HasSubstr("a.h5: trained with batch norm over all micro-batches"));
  TrainingState cut = written.state;
  cut.shared->values[kGenerator].pop_back();
  const auto checked = check_state(cut, with.layout, with.options);
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().message, HasSubstr("shared statistics have another size"));
}

// A supervised task takes its network from the discriminator of a GAN, and nothing else.
TEST_F(CheckpointFile, StateOfWorkersThatTakeTurnsIsOfTheFifthVersion) {
  const auto with = [&](StrategyKind kind, std::uint32_t workers) {
    StateExample example = example_;
    example.options.strategy = {kind, workers, 3, {}};
    example.options = options_between_members(example.options, {});
    return example;
  };
  for (const StrategyKind kind : {StrategyKind::kDownpour, StrategyKind::kGem}) {
    const StateExample turns = with(kind, 2);
    Checkpoint written;
    written.state = initial_state(turns.layout, turns.options, "class", {});
    WorkerState& last = written.state.turns->workers.back();
    written.state.iteration = 7;
    written.state.slot = 1;
    written.state.turns->next = WorkerSet{{2}};
    written.state.turns->order = with_turn({}, 0);
    written.state.turns->workers.front().turns = 8;
    last.turns = 7;
    last.generator.weights.front() = 0.25f;
    last.generator.counters.updates = 9;
    last.discriminator.moving.back() = -0.5f;
    last.discriminator.optimiser_arrays.back() = 0.125f;
    if (kind == StrategyKind::kGem) last.moment[kDiscriminator].front() = 2.0f;
    const Buffer file = encode_checkpoint(written, turns.layout, turns.options).value();
    EXPECT_EQ(inspect_checkpoint(file, "a.h5").value().version, 5u);
    const auto read = decode_checkpoint(file, "a.h5", turns.layout, turns.options);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(hash_of_state(read->state), hash_of_state(written.state));
    EXPECT_EQ(read->state.turns->workers.back().generator.weights, last.generator.weights);
    EXPECT_EQ(read->state.turns->workers.back().moment, last.moment);
    const StateExample more = with(kind, 4);
    const auto others = decode_checkpoint(file, "a.h5", more.layout, more.options);
    ASSERT_FALSE(others.ok());
    EXPECT_THAT(others.error().message, HasSubstr("a.h5: of another model or optimiser"));
    const auto without = decode_checkpoint(file, "a.h5", example_.layout, example_.options);
    ASSERT_FALSE(without.ok());
    EXPECT_THAT(without.error().message, HasSubstr("a.h5: trained with workers that take turns"));
  }
  EXPECT_THAT(refusal(with(StrategyKind::kEasgd, 2)),
              HasSubstr("trained without workers that take turns (train.strategy: downpour, easgd, "
                        "gem or quorum), which the topology has: give it the strategy"));
}

// Both have two steps in an iteration.
TEST_F(CheckpointFile, StateOfTurnsOfMoreWorkersIsRefused) {
  const auto with = [&](std::uint32_t of) {
    StateExample example = example_;
    example.options.strategy = {StrategyKind::kQuorum, 4, 3, {}};
    example.options.strategy.of = of;
    example.options.micro_batches = 4;
    example.options = options_between_members(example.options, {});
    return example;
  };
  const StateExample three = with(3), two = with(2);
  Checkpoint written;
  written.state = initial_state(three.layout, three.options, "class", {});
  const Buffer file = encode_checkpoint(written, three.layout, three.options).value();
  EXPECT_TRUE(decode_checkpoint(file, "a.h5", three.layout, three.options).ok());
  const auto others = decode_checkpoint(file, "a.h5", two.layout, two.options);
  ASSERT_FALSE(others.ok());
  EXPECT_THAT(others.error().message,
              HasSubstr("trained with turns of 3 workers, where the topology has those of 2"));
}

TEST_F(CheckpointFile, StateInWhichAWorkerWouldHaveASecondTurnIsRefused) {
  StateExample example = example_;
  example.options.strategy = {StrategyKind::kDownpour, 2, 3, {}};
  example.options = options_between_members(example.options, {});
  Checkpoint written;
  written.state = initial_state(example.layout, example.options, "class", {});
  written.state.turns->workers.front().turns = 1;
  const Buffer file = encode_checkpoint(written, example.layout, example.options).value();
  const auto read = decode_checkpoint(file, "a.h5", example.layout, example.options);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("it has workers that have had other turns"));
}

TEST_F(CheckpointFile, GivesASupervisedTaskItsNetworkAlone) {
  const TemporaryFolder folder;
  runtime::FileDisk disk;
  ASSERT_TRUE(disk.replace(folder / "a.h5", encode(example_).bytes()).ok());
  model::GanDescription task;
  task.task = model::Task::kSupervised;
  task.discriminator = {"network",
                        model::Shape::features(2),
                        {{"hidden", model::Dense{3}, ""},
                         {"norm", model::BatchNorm{0.75}, ""},
                         {"generation", model::Dense{1}, ""}},
                        {"generation"}};
  TrainingState state;
  const auto taken = take_weights(folder / "a.h5", task, disk, state);
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  EXPECT_THAT(*taken, HasSubstr("the network from the checkpoint"));
  EXPECT_EQ(state.discriminator.weights, filled_state(example_).discriminator.weights);
  EXPECT_EQ(state.discriminator.moving, filled_state(example_).discriminator.moving);
  EXPECT_TRUE(state.generator.weights.empty() && state.generator.moving.empty());
}

TEST_F(CheckpointFile, InspectionNeedsNoModelAndRecomputesTheHash) {
  const Checkpoint written = example_checkpoint(example_);
  const auto summary = inspect_checkpoint(encode(example_), "a.h5");
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_EQ(summary->path, "a.h5");
  EXPECT_EQ(summary->version, 2u);
  EXPECT_EQ(summary->recomputed_hash, hash_of_state(written.state));
  EXPECT_EQ(summary->state_hash, summary->recomputed_hash);
  EXPECT_EQ(summary->state.epoch, written.state.epoch);
  EXPECT_EQ(summary->state.iteration, written.state.iteration);
  EXPECT_EQ(summary->state.slot, 2u);
  EXPECT_EQ(summary->state.micro_batch, 2u);
  EXPECT_EQ(summary->state.micro_batches, 4u);
  EXPECT_EQ(summary->state.seed, 1u);
  EXPECT_EQ(summary->model, "toy");
  EXPECT_EQ(summary->topology, written.topology);
  EXPECT_EQ(summary->state.numerics_class, written.state.numerics_class);
  EXPECT_EQ(summary->state.data_fingerprint, written.state.data_fingerprint);
  // 6 weights each, twice more for two arrays each, and 2 moving statistics each.
  ASSERT_EQ(summary->tensors.size(), 2u * (6 + 2 * 6 + 2));
  EXPECT_EQ(summary->tensors[0].path, "/generator/dense/kernel");
  EXPECT_EQ(summary->tensors[0].shape, (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(summary->tensors[12].path, "/optimizer/generator/mean/dense/kernel");
  EXPECT_EQ(summary->tensors.back().path, "/discriminator/norm/moving_variance");
}

TEST_F(CheckpointFile, OtherModelIsRefusedByTheTensorThatDiffers) {
  StateExample other = state_example();
  other.layout.networks[kGenerator].parameters.weights[4].shape = {2, 4};
  EXPECT_THAT(refusal(other),
              HasSubstr("/generator/image/kernel of shape (4, 2) where this one has "
                        "/generator/image/kernel of shape (2, 4)"));
  other = state_example();
  other.layout.networks[kDiscriminator].parameters.weights[0].name = "first/kernel";
  EXPECT_THAT(refusal(other), HasSubstr("/discriminator/hidden/kernel"));
  EXPECT_THAT(refusal(other), HasSubstr("/discriminator/first/kernel"));
  other = state_example();
  other.layout.networks[kDiscriminator].parameters.moving.pop_back();
  EXPECT_THAT(refusal(other), HasSubstr("its /discriminator/norm/moving_variance of shape (3) is "
                                        "not in this one"));
  other = state_example();
  auto& moving = other.layout.networks[kDiscriminator].parameters.moving;
  moving.push_back(moving.back());
  moving.back().name = "more/moving_mean";
  EXPECT_THAT(refusal(other), HasSubstr("has no /discriminator/more/moving_mean of shape (3)"));
}

TEST_F(CheckpointFile, OtherOptimiserScheduleOrNumbersAreRefused) {
  StateExample other = state_example();
  other.options.discriminator_optimiser.momentum = 0.0;
  EXPECT_THAT(refusal(other), HasSubstr("/optimizer/discriminator/velocity/hidden/kernel"));
  other = state_example();
  other.options.schedule.pop_back();
  EXPECT_THAT(refusal(other), HasSubstr("its schedule has 4 slots, this one 3"));
  other = state_example();
  other.options.schedule[1] = model::SlotKind::kDReal;
  EXPECT_THAT(refusal(other), HasSubstr("slot 1 (d_real) of its schedule contributes 11 tensors"));
  other = state_example();
  other.options.seed = 2;
  EXPECT_THAT(refusal(other), HasSubstr("trained with seed 1, the topology has 2"));
  other = state_example();
  other.options.micro_batch = 16;
  EXPECT_THAT(refusal(other), HasSubstr("trained with micro_batch 2, the topology has 16"));
  other = state_example();
  other.options.micro_batches = 8;
  EXPECT_THAT(refusal(other), HasSubstr("trained with micro_batches 4, the topology has 8"));
  EXPECT_EQ(refusal(example_), "");
}

// On disk, for readers that know nothing of Troupe.
class CheckpointOnDisk : public CheckpointFile {
 protected:
  void SetUp() override {
    ASSERT_TRUE(runtime::FileDisk().replace(path_, encode(example_).bytes()).ok());
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "a.h5";
};

TEST_F(CheckpointOnDisk, OpensWithThePlainHdf5Library) {
  const Hdf5Lock lock;
  const Hdf5Handle file(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  ASSERT_TRUE(file.valid());
  const Hdf5Handle creation(H5Fget_create_plist(file.id()));
  hsize_t user_block = 0;
  H5Pget_userblock(creation.id(), &user_block);
  EXPECT_EQ(user_block, 512u);
  const Hdf5Handle dataset(
      H5Dopen2(file.id(), "/optimizer/discriminator/velocity/generation/kernel", H5P_DEFAULT));
  ASSERT_TRUE(dataset.valid());
  std::vector<float> values(3);
  H5Dread(dataset.id(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  const auto& arrays = filled_state(example_).discriminator.optimiser_arrays;
  EXPECT_EQ(values, std::vector<float>(arrays.begin() + 19 + 15, arrays.begin() + 19 + 18));
}

TEST_F(CheckpointOnDisk, OpensWithH5py) {
  const std::string python = "/usr/bin/python3 ";
  if (std::system((python + "-c 'import h5py' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "no h5py here";
  }
  const TrainingState state = filled_state(example_);
  const std::string script =
      "import h5py, sys\n"
      "f = h5py.File(sys.argv[1], 'r')\n"
      "assert f.userblock_size == 512\n"
      "assert f['generator/dense/kernel'].shape == (3, 4)\n"
      "assert f['generator/dense/kernel'].dtype == 'float32'\n"
      "assert float(f['generator/dense/kernel'][0, 1]) == float.fromhex(sys.argv[2])\n"
      "assert sorted(f['generator/norm']) == ['beta', 'gamma', 'moving_mean', 'moving_variance']\n"
      "assert int(f['state'].attrs['iteration']) == int(sys.argv[3])\n"
      "assert float(f['state'].attrs['generator.beta_1_power']) == float.fromhex(sys.argv[4])\n"
      "assert len(f['state/scales']) == 4 and f['state/scales/0'].dtype == 'int16'\n"
      "text = lambda value: value.decode() if isinstance(value, bytes) else str(value)\n"
      "assert text(f.attrs['state_hash']) == sys.argv[5], f.attrs['state_hash']\n"
      "assert text(f.attrs['model']) == 'toy'\n"
      "assert text(f['topology'][()]).startswith('name: example')\n";
  std::string command = python + "-c \"" + script + "\" " + path_;
  char number[64];
  std::snprintf(number, sizeof number, " %a", static_cast<double>(state.generator.weights[1]));
  command += number + (" " + std::to_string(state.iteration));
  std::snprintf(number, sizeof number, " %a ", state.generator.counters.beta_1_power);
  command += number + hash_of_state(state).text();
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

}  // namespace
}  // namespace troupe::pipeline
