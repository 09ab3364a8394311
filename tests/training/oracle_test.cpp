// One whole iteration against PyTorch in float64 (tests/oracle/make_oracle.py): loss terms within
// 1e-5 relative, every gradient and batch statistic within 1e-4 relative L2. The fixtures hold the
// norm and 8 projections on random signs of each tensor; with TROUPE_ORACLE_WHOLE set to a folder
// of whole tensors (tests/oracle/run_slow), every element is compared.

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "runtime/base/disk.h"
#include "runtime/base/random.h"
#include "tests/training/alone.h"

namespace troupe::training_test {
namespace {

constexpr double kLossTolerance = 1e-5;
constexpr double kGradientTolerance = 1e-4;
constexpr int kProjections = 8;
// The error of a projection on random signs is about the error's L2 norm; five times it is far out.
constexpr double kProjectionTolerance = 5 * kGradientTolerance;
constexpr std::uint32_t kMicroBatch = 3;
constexpr std::uint64_t kIteration = 5;
constexpr std::uint64_t kDataSeed = 77;

using Role = model::ContributionTensor::Role;

Role role_of(const std::string& network) {
  if (network == "generator") return Role::kGeneratorGradient;
  if (network == "discriminator") return Role::kDiscriminatorGradient;
  if (network == "generator-moving") return Role::kGeneratorMoving;
  return Role::kDiscriminatorMoving;
}

const model::ContributionTensor& find(const model::ContributionLayout& layout, Role role,
                                      int index) {
  for (const auto& tensor : layout.tensors) {
    if (tensor.role == role && tensor.index == index) return tensor;
  }
  CHECK(false, "the oracle names a tensor the model lacks");
}

double norm(std::span<const float> values) {
  double sum = 0.0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

double projection(std::span<const float> values, std::uint32_t projection, std::uint32_t tensor) {
  const runtime::RandomPosition signs{99, projection, 0, 0, tensor};
  double sum = 0.0;
  for (std::uint32_t i = 0; i < values.size(); i += 4) {
    const runtime::PhiloxBlock block = runtime::random_block(signs, i / 4);
    for (std::uint32_t j = 0; j < 4 && i + j < values.size(); ++j) {
      sum += (block[j] & 1) == 1 ? values[i + j] : -static_cast<double>(values[i + j]);
    }
  }
  return sum;
}

// Relative L2 distance from a file of raw float64.
double whole_difference(const std::string& path, std::span<const float> values) {
  runtime::FileDisk disk;
  const auto file = disk.read(path);
  CHECK(file.ok(), file.ok() ? "" : file.error().message);
  const auto want = file->as<double>();
  CHECK(want.size() == values.size());
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    difference += (values[i] - want[i]) * (values[i] - want[i]);
    size += want[i] * want[i];
  }
  return std::sqrt(difference / size);
}

class Oracle : public testing::TestWithParam<const char*> {};

TEST_P(Oracle, WholeIterationAgreesWithPyTorchInDouble) {
  const std::string name = GetParam();
  std::ifstream fixture(std::string(TROUPE_SOURCE_DIR) + "/tests/oracle/" + name + ".txt");
  ASSERT_TRUE(fixture) << "missing fixture; make it with tests/oracle/make_oracle.py";
  Alone alone(zoo_topology(name, {"train.micro_batch=2", "train.micro_batches=1", "train.seed=20",
                                  "model.kernels=fastest"}),
              model::make_cpu_backend());
  pipeline::TrainingState state = alone.initial_state();
  state.iteration = kIteration;
  const std::vector<pipeline::MicroBatch> events{alone.micro_batch(kMicroBatch, kDataSeed)};
  const char* whole = std::getenv("TROUPE_ORACLE_WHOLE");

  pipeline::StepRecord record;
  std::vector<float> values;
  const model::ContributionLayout* layout = nullptr;
  const auto apply = [&] {
    ASSERT_TRUE(pipeline::apply(alone.gan(), alone.options(), record, state).ok());
  };
  std::string line;
  std::getline(fixture, line);
  int slots = 0, tensors = 0, losses = 0;
  while (std::getline(fixture, line)) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "slot") {
      if (slots++ > 0) apply();
      record = alone.reduce_step(state, events);
      layout = &alone.gan().contributions(alone.options().schedule[state.slot]);
      values.resize(static_cast<std::size_t>(layout->size));
      for (std::size_t i = 0; i < layout->tensors.size(); ++i) {
        const auto offset = static_cast<std::size_t>(layout->tensors[i].offset);
        const auto size = static_cast<std::size_t>(layout->tensors[i].size);
        model::restore_mean(record.sums.as<std::int64_t>().subspan(offset, size), record.scales[i],
                            1, std::span(values).subspan(offset, size));
      }
    } else if (what == "loss") {
      std::string term;
      double want = 0.0;
      words >> term >> want;
      const int index = layout->find("loss/" + term);
      ASSERT_GE(index, 0) << term;
      const double got =
          values[static_cast<std::size_t>(layout->tensors[static_cast<std::size_t>(index)].offset)];
      EXPECT_NEAR(got, want, kLossTolerance * std::fabs(want)) << "slot " << state.slot << term;
      ++losses;
    } else {
      std::string network;
      int number = 0;
      std::size_t size = 0;
      double want_norm = 0.0;
      words >> network >> number >> size >> want_norm;
      const auto& tensor = find(*layout, role_of(network), number);
      const std::string where = "slot " + std::to_string(state.slot) + " " + tensor.name;
      ASSERT_EQ(static_cast<std::size_t>(tensor.size), size) << where;
      const auto part =
          std::span<const float>(values).subspan(static_cast<std::size_t>(tensor.offset), size);
      EXPECT_NEAR(norm(part), want_norm, kGradientTolerance * want_norm) << where;
      for (std::uint32_t j = 0; j < kProjections; ++j) {
        double want = 0.0;
        words >> want;
        EXPECT_NEAR(projection(part, j, static_cast<std::uint32_t>(number)), want,
                    kProjectionTolerance * want_norm)
            << where << " projection " << j;
      }
      if (whole != nullptr) {
        const std::string path = std::string(whole) + "/" + name + "/" +
                                 std::to_string(state.slot) + "-" + network + "-" +
                                 std::to_string(number) + ".f64";
        EXPECT_LT(whole_difference(path, part), kGradientTolerance) << where;
      }
      ++tensors;
    }
  }
  EXPECT_EQ(slots, 4);
  EXPECT_GT(losses, 8);
  EXPECT_GT(tensors, 60);
}

INSTANTIATE_TEST_SUITE_P(Zoo, Oracle, testing::Values("gan3d_25", "gan3d_51"));

}  // namespace
}  // namespace troupe::training_test
