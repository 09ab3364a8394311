#include "config/field_search.h"

#include <gmock/gmock.h>

#include "tests/config/config_support.h"

namespace troupe::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(FieldSearch, WordFindsTheFieldsOfThatNameWhereverTheyStand) {
  EXPECT_THAT(fields_named("epochs"), ElementsAre("train.epochs"));
  EXPECT_THAT(fields_named("train.epochs"), ElementsAre("train.epochs"));
  EXPECT_THAT(fields_named("micro-batch"), ElementsAre("train.micro_batch"));
  EXPECT_THAT(fields_named("seed"), ElementsAre("data.synthetic.seed", "train.seed"));
  EXPECT_THAT(fields_named("name"), ElementsAre("name"));
}

TEST(FieldSearch, NameOfASectionFindsItsFields) {
  EXPECT_THAT(fields_named("optimiser"),
              ElementsAre("train.optimiser.g", "train.optimiser.d", "train.optimiser.network"));
  EXPECT_THAT(fields_named("loader"),
              ElementsAre("actors.loader.threads", "actors.loader.credits"));
}

TEST(FieldSearch, MistypedNameFindsTheNearestAndAStrangeOneNothing) {
  EXPECT_THAT(fields_named("epoch"), IsEmpty());
  EXPECT_THAT(fields_near("epoch"), ElementsAre("train.epochs"));
  EXPECT_THAT(fields_near("dvice"), ElementsAre("actors.replica.device"));
  EXPECT_THAT(fields_near("frobnicate"), IsEmpty());
  EXPECT_THAT(fields_near("x"), IsEmpty());
}

TEST(FieldSearch, EmptyNameFindsNothing) {
  EXPECT_THAT(fields_named(""), IsEmpty());
  EXPECT_THAT(fields_near(""), IsEmpty());
}

TEST(FieldSearch, WordOfAFieldFindsItAndWhetherItIsTaken) {
  const auto gpu = fields_taking("GPU");
  ASSERT_EQ(gpu.size(), 1);
  EXPECT_EQ(gpu[0].path, "actors.replica.device");
  EXPECT_EQ(gpu[0].refusal, "");
  const auto tpu = fields_taking("TPU");
  ASSERT_EQ(tpu.size(), 1);
  EXPECT_THAT(tpu[0].refusal, HasSubstr("not tpu: no backend for it is built in"));
  std::vector<std::string> paths;
  for (const FieldOfWord& field : fields_taking("bf16")) {
    EXPECT_EQ(field.refusal, "");
    paths.push_back(field.path);
  }
  EXPECT_THAT(paths, ElementsAre("model.precision", "actors.reducer.reduction"));
  EXPECT_THAT(words_of("actors.reducer.reduction"), ElementsAre("exact", "fp32", "bf16", "int8"));
}

TEST(FieldSearch, KeyInTheWrongSectionIsToldItsPlace) {
  EXPECT_EQ(message_of(parse(kLeast, {"epochs=3"})),
            "--set epochs=3: unknown key \"epochs\"; did you mean train.epochs?");
  EXPECT_EQ(message_of(parse("model: {zoo: toy}\ndata: {train: [a.h5], seed: 3}\n")),
            "t.yaml:2:23: data: unknown key \"seed\"; did you mean data.synthetic.seed or "
            "train.seed?");
  // What stands in the section comes first.
  EXPECT_THAT(message_of(parse(kLeast + "train: {epoch: 3}\n")),
              HasSubstr("did you mean \"epochs\"?"));
}

}  // namespace
}  // namespace troupe::config
