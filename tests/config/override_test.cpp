#include "config/override.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

using testing::HasSubstr;

TEST(Override, ReplacesAddsAndNestsInTheOrderGiven) {
  const LoadedTopology loaded =
      parsed(kLeast, {"train.seed=7", "train.seed=8", "train.learning_rate.g=2e-3",
                      "train.learning_rate.d={rate: 5e-4, policy: plateau}", "name=x",
                      "actors.checkpointer.every=50 iterations", "train.schedule=[d_real, g]"});
  const auto& options = loaded.topology.train.options;
  EXPECT_EQ(options.seed, 8u);
  EXPECT_EQ(options.generator_rate.rate, 2e-3);
  EXPECT_EQ(options.discriminator_rate.rate, 5e-4);
  EXPECT_EQ(options.discriminator_rate.kind, model::LearningRateKind::kPlateau);
  EXPECT_EQ(options.schedule.size(), 2u);
  EXPECT_EQ(loaded.topology.checkpointer.every, (Every{Every::Unit::kIterations, 50}));
  EXPECT_EQ(loaded.origins.at("train.seed").text(), "--set train.seed=8");
}

TEST(Override, AShortFormBecomesASectionWhenAPartOfItIsSet) {
  const std::string text = kLeast + "train: {learning_rate: {g: 3e-3}, optimiser: {d: adam}}\n";
  const LoadedTopology loaded =
      parsed(text, {"train.learning_rate.g.policy=exponential", "train.optimiser.d.beta_1=0.5"});
  const auto& options = loaded.topology.train.options;
  EXPECT_EQ(options.generator_rate.rate, 3e-3);
  EXPECT_EQ(options.generator_rate.kind, model::LearningRateKind::kExponential);
  EXPECT_EQ(options.discriminator_optimiser.kind, model::OptimiserKind::kAdam);
  EXPECT_EQ(options.discriminator_optimiser.beta_1, 0.5);
  EXPECT_EQ(loaded.origins.at("train.learning_rate.g.rate").line, 3);
  const Topology norm =
      parsed(kLeast, {"model.generator.layers.3.batch_norm.momentum=0.5"}).topology;
  const auto& layer = norm.model.gan.generator.layers[3];
  EXPECT_EQ(std::get<model::BatchNorm>(layer.kind).momentum, 0.5);
}

TEST(Override, ReachesIntoTheModelOfTheZoo) {
  const LoadedTopology loaded = parsed(
      kLeast, {"model.losses.auxiliary.weight=0.7", "model.discriminator.layers.3.dropout=0.5",
               "model.generator.layers.0.dense.initialiser=he_uniform"});
  const auto& gan = loaded.topology.model.gan;
  EXPECT_EQ(gan.losses[1].weight, 0.7);
  EXPECT_EQ(std::get<model::Dropout>(gan.discriminator.layers[3].kind).rate, 0.5);
  const auto& dense = std::get<model::Dense>(gan.generator.layers[0].kind);
  EXPECT_EQ(dense.units, 8);
  EXPECT_EQ(dense.initialiser, model::Initialiser::kHeUniform);
}

TEST(Override, CanChooseAnotherModelOfTheZoo) {
  const LoadedTopology loaded = parsed(kLeast, {"model.zoo=gan3d_25"});
  EXPECT_EQ(loaded.topology.model.zoo, "gan3d_25");
  EXPECT_EQ(loaded.topology.model.gan.discriminator.input.space[0], 25);
  EXPECT_THAT(message_of(parse(kLeast, {"model.zoo=gan3d_13"})),
              HasSubstr("--set model.zoo=gan3d_13: model.zoo: expected one of"));
}

TEST(Override, ProblemsStandAfterThoseOfTheFileAndNameTheOverride) {
  const std::string message =
      message_of(parse(kLeast + "nam: x\n", {"train.micro_batch=abc", "tran.seed=3",
                                             "model.generator.layers.77.dense=4"}));
  EXPECT_EQ(message,
            "t.yaml:3:1: unknown key \"nam\"; did you mean \"name\"?\n"
            "--set model.generator.layers.77.dense=4: the list has 7 items, the last of them 6\n"
            "--set train.micro_batch=abc: train.micro_batch: expected a whole number from 1 to "
            "65536, found text \"abc\"\n"
            "--set tran.seed=3: unknown key \"tran\"; did you mean \"train\"?");
}

TEST(Override, AnEmptyListHasNoItemToSet) {
  EXPECT_THAT(message_of(parse(kLeast, {"train.schedule=[]", "train.schedule.0=g"})),
              HasSubstr("--set train.schedule.0=g: the list is empty"));
}

TEST(Override, SettingBelowAPlainValueIsAProblemOfThatValue) {
  EXPECT_THAT(message_of(parse(kLeast, {"train.seed=3", "train.seed.x=4"})),
              HasSubstr("train.seed: expected a whole number"));
  EXPECT_THAT(message_of(parse(kLeast + "train: 3\n", {"train.seed=4"})),
              HasSubstr("train: expected a section, found the number 3"));
}

TEST(Override, AValueMayHoldEqualsSignsAndMustBeYaml) {
  EXPECT_EQ(parsed(kLeast, {"data.train=a=b.h5"}).topology.data.dataset.paths[0],
            (std::filesystem::current_path() / "a=b.h5").string());
  EXPECT_THAT(message_of(parse(kLeast, {"train.schedule=[d_real"})),
              HasSubstr("--set train.schedule=[d_real: not valid YAML"));
  EXPECT_THAT(message_of(parse(kLeast, {"train.seed="})), HasSubstr("found nothing"));
}

TEST(Override, APatternThatBeginsWithAStarIsShownInItsQuotes) {
  EXPECT_EQ(
      message_of(parse(kLeast, {"data.train=*.h5"})),
      "--set data.train=*.h5: a pattern that begins with * needs two pairs of quotes, one for "
      "the shell and one for YAML: --set 'data.train=\"*.h5\"'");
  EXPECT_EQ(parsed(kLeast, {"data.train=\"*.h5\""}).topology.data.dataset.paths[0],
            (std::filesystem::current_path() / "*.h5").string());
}

TEST(Override, WithoutAnEqualsSignItIsAUsageError) {
  for (const char* text : {"train.seed", "=3", "a..b=3", ".a=3", "a.=3", ""}) {
    const auto result = parse(kLeast, {text});
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.error().kind, runtime::ErrorKind::kUsage) << text;
  }
}

TEST(Override, PathsOfTheFileAreRelativeToItThoseOfTheCommandLineToTheCurrentFolder) {
  const LoadedTopology file = parsed(kLeast);
  EXPECT_EQ(file.topology.data.dataset.paths, std::vector<std::string>{"/folder/a.h5"});
  const auto here = parse_topology(kLeast, "t.yaml", "");
  ASSERT_TRUE(here.ok());
  EXPECT_EQ(here->topology.data.dataset.paths[0],
            (std::filesystem::current_path() / "a.h5").string());
  const LoadedTopology over = parsed(kLeast, {"data.train=[../b.h5, /c.h5]"});
  const auto parent = std::filesystem::current_path().parent_path();
  EXPECT_EQ(over.topology.data.dataset.paths,
            (std::vector<std::string>{(parent / "b.h5").string(), "/c.h5"}));
}

}  // namespace
}  // namespace troupe::config
