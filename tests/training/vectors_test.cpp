// Every model of the zoo trains to the same bits whatever vectors the host has.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "config/shipped.h"
#include "model/backend/cpu/plane_vectors.h"
#include "tests/model/only_targets.h"
#include "tests/training/alone.h"

namespace troupe::training_test {
namespace {

using model::Precision;

// gan3d_12, of which two norms are over all micro-batches.
const std::string kSharedNorms = "shared_norms";

class Vectors : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if ((hwy::SupportedTargets() & HWY_AVX3) == 0) GTEST_SKIP() << "no AVX-512 on this host";
  }
  // The state after an iteration with these vectors, or with all that the host has where `targets`
  // is 0.
  static runtime::Hash128 trained_hash(Precision precision, std::int64_t targets) {
    std::optional<model::OnlyTargets> only;
    if (targets != 0) only.emplace(targets);
    EXPECT_EQ(model::cpu::vector_lanes(), targets == HWY_AVX2 ? 8 : 16);
    auto backend = model::make_portable_backend(precision);
    CHECK(backend.ok(), backend.ok() ? "" : backend.error().message);
    std::string model = GetParam();
    std::vector<std::string> overrides{"train.micro_batch=1", "train.micro_batches=1"};
    if (model == kSharedNorms) {
      model = "gan3d_12";
      overrides = {"train.micro_batch=2", "train.micro_batches=3",
                   "model.generator.layers.3={batch_norm: {sync: true}}",
                   "model.discriminator.layers.8={batch_norm: {sync: true}}"};
    }
    Alone alone(zoo_topology(model, overrides), std::move(*backend));
    pipeline::TrainingState state = alone.initial_state();
    for (std::size_t slot = 0; slot < alone.options().schedule.size(); ++slot) alone.step(state);
    return pipeline::hash_of_state(state);
  }
};

TEST_P(Vectors, OfAvx2AndOfTheHostTrainToTheSameBitsInFp32) {
  EXPECT_EQ(trained_hash(Precision::kFp32, HWY_AVX2), trained_hash(Precision::kFp32, 0));
}

TEST_P(Vectors, OfAvx2AndOfTheHostTrainToTheSameBitsInBf16HoweverPairsAreMultiplied) {
  const auto hash = [](std::int64_t targets, bool at_once) {
    const model::PairsAtOnceIs pairs(at_once);
    return trained_hash(Precision::kBf16, targets);
  };
  const runtime::Hash128 expected = hash(HWY_AVX2, false);
  EXPECT_EQ(expected, hash(HWY_AVX2, true));
  EXPECT_EQ(expected, hash(0, false));
  EXPECT_EQ(expected, hash(0, true));
}

INSTANTIATE_TEST_SUITE_P(Zoo, Vectors, testing::ValuesIn(config::zoo_names()),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Norms, Vectors, testing::Values(kSharedNorms));

}  // namespace
}  // namespace troupe::training_test
