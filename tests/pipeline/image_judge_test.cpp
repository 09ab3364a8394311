// A classifier that judges generated images: its figures against numpy and scipy
// (tests/oracle/class_figures.py), and what is no judge.

#include "pipeline/data/image_judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "model/physics/class_table.h"
#include "tests/pipeline/data_fixture.h"
#include "tests/support/json_value.h"

namespace troupe::pipeline {
namespace {

using model::LossKind;
using model::Target;
using testing::HasSubstr;

// Images of 2 x 2 cells.
std::vector<float> images(int count, int of_event, int of_cell, int modulus) {
  std::vector<float> cells;
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < 4; ++k) {
      cells.push_back(static_cast<float>((i * of_event + k * of_cell) % modulus) /
                      static_cast<float>(modulus - 1));
    }
  }
  return cells;
}

model::GanDescription classifier() {
  model::GanDescription task;
  task.task = model::Task::kSupervised;
  task.discriminator = {"network", model::Shape::image({2, 2, 1}, 1), {}, {}};
  task.discriminator.layers = {{"flat", model::Flatten{}, ""},
                               {"hidden", model::Dense{3}, ""},
                               {"known", model::Activation{model::ActivationKind::kRelu}, ""},
                               {"kind", model::Dense{3}, ""}};
  task.losses = {{"kind", LossKind::kClassCrossentropy, Target::kColumn, 1.0, "pdg", {1, 2, 3}}};
  return task;
}

std::vector<float> weights() {
  std::vector<float> weights;
  for (int j = 0; j < 4; ++j) {
    for (int u = 0; u < 3; ++u) {
      weights.push_back(static_cast<float>((5 * j + 3 * u) % 7 - 3) / 4.0f);
    }
  }
  for (const float bias : {0.1f, -0.2f, 0.3f}) weights.push_back(bias);
  for (int u = 0; u < 3; ++u) {
    for (int c = 0; c < 3; ++c) {
      weights.push_back(static_cast<float>(((u + 2 * c) % 3 - 1) * 2));
    }
  }
  for (const float offset : {-0.2f, 0.4f, 0.3f}) weights.push_back(offset);
  return weights;
}

model::ClassifiedImages classified(ImageJudge& judge, const std::vector<float>& cells) {
  model::ClassifiedImages found = judge.none();
  judge.add(cells, found);
  return found;
}

class ImageJudgeTest : public testing::Test {
 protected:
  std::vector<model::Figure> figures(const model::ClassFigureOptions& options = {},
                                     int threads = 1) const {
    runtime::ThreadTeam team(threads);
    return model::compute_class_figures(data_, generated_, options, team);
  }

  const std::unique_ptr<ImageJudge> judge_ =
      ImageJudge::create(classifier(), {weights(), {}}).value();
  const model::ClassifiedImages data_ = classified(*judge_, images(30, 7, 5, 11));
  const model::ClassifiedImages generated_ = classified(*judge_, images(25, 3, 2, 13));
};

TEST_F(ImageJudgeTest, FiguresAreThoseOfNumpyAndScipy) {
  EXPECT_EQ(judge_->classes(), 3u);
  EXPECT_EQ(judge_->features(), 3u);
  std::vector<int> of_data(3), of_generated(3);
  for (const std::uint32_t name : data_.named) ++of_data[name];
  for (const std::uint32_t name : generated_.named) ++of_generated[name];
  EXPECT_THAT(of_data, testing::ElementsAre(11, 13, 6));
  EXPECT_THAT(of_generated, testing::ElementsAre(11, 0, 14));
  const auto found = figures();
  EXPECT_NEAR(found[0].value.value(), 0.036527058080991624, 1e-6);
  EXPECT_NEAR(found[1].value.value(), 60.29524597282706, 1e-4);
  EXPECT_NEAR(found[1].ideal, 57.383757500979826, 1e-4);
  EXPECT_NEAR(found[2].value.value(), 43.333333333333336, 1e-12);
}

TEST_F(ImageJudgeTest, FloorIsThatOfTheDataAndDependsOnTheSeedAlone) {
  model::ClassFigureOptions options;
  options.replicas = 200;
  const auto one = figures(options), other = figures(options, 3);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].value, figures()[i].value);
    EXPECT_GT(one[i].uncertainty, 0.0);
    EXPECT_GT(one[i].floor, 0.0);
    EXPECT_GE(one[i].floor_95, one[i].floor);
    EXPECT_EQ(one[i].uncertainty, other[i].uncertainty);
    EXPECT_EQ(one[i].floor, other[i].floor);
  }
  runtime::ThreadTeam team(1);
  const auto itself = model::compute_class_figures(data_, data_, options, team);
  for (const model::Figure& figure : itself) {
    EXPECT_NEAR(figure.distance(), 0.0, 1e-9) << figure.name;
    EXPECT_FALSE(figure.beyond_floor()) << figure.name;
    // Draws of the two sides are not the same ones.
    EXPECT_GT(figure.uncertainty, 0.0) << figure.name;
    EXPECT_GT(figure.floor, 0.0) << figure.name;
  }
  // Fewer images are further from the data by chance.
  const auto few = classified(*judge_, images(5, 3, 2, 13));
  EXPECT_GT(model::compute_class_figures(data_, few, options, team)[0].floor, 1.5 * one[0].floor);
  options.seed = 2;
  EXPECT_NE(figures(options)[0].uncertainty, one[0].uncertainty);
  int asked = 0;
  options.going_on = [&](double) { return ++asked > 0; };
  EXPECT_EQ(figures(options).size(), 3u);
  EXPECT_EQ(asked, 2 * options.replicas) << "one thread asks behind each draw";
  options.going_on = [](double share) { return share < 0.3; };
  EXPECT_THAT(figures(options), testing::IsEmpty());
}

TEST_F(ImageJudgeTest, ImagesWithoutNumbersHaveNoFigures) {
  auto cells = images(25, 3, 2, 13);
  cells[7] = std::numeric_limits<float>::quiet_NaN();
  runtime::ThreadTeam team(1);
  const auto found = model::compute_class_figures(data_, classified(*judge_, cells), {}, team);
  for (const model::Figure& figure : found) EXPECT_FALSE(figure.value) << figure.name;
  for (const bool is_feature : {false, true}) {
    model::ClassifiedImages spoiled = data_;
    (is_feature ? spoiled.features.values : spoiled.confidence)[4] =
        std::numeric_limits<double>::quiet_NaN();
    EXPECT_FALSE(model::compute_class_figures(spoiled, generated_, {}, team)[2].value);
    EXPECT_FALSE(model::compute_class_figures(data_, spoiled, {}, team)[2].value);
  }
  const auto of_data = figures();
  const model::ClassTable table{30, of_data, found, "judge_frechet"};
  const JsonValue row = parse_json(model::table_json(table))["rows"].list()[1];
  EXPECT_TRUE(row["comparison"]["judge_frechet"].is_null());
  EXPECT_TRUE(row["chosen"]["distance"].is_null());
  const auto one =
      model::compute_class_figures(data_, classified(*judge_, images(1, 3, 2, 13)), {}, team);
  EXPECT_FALSE(one[0].value);
}

TEST_F(ImageJudgeTest, EventsOfADatasetLieEvenlyAndKeepTheirConditions) {
  constexpr int kEvents = 300;  // more than are read at once
  TemporaryFolder folder;
  std::vector<float> energies;
  for (int i = 0; i < kEvents; ++i) energies.push_back(100.0f * static_cast<float>(i + 1));
  {
    Hdf5Scribe file(folder / "b.h5");
    file.add("ECAL", {kEvents, 2, 2, 1}, images(kEvents, 7, 5, 11));
    file.add("energy", {kEvents}, energies);
    file.add("pdg", {kEvents}, energies);
  }
  DatasetOptions options;
  options.paths = {folder / "b.h5"};
  options.schema = DataSchema::kCustom;
  options.names.emplace().energy = "energy";
  options.columns = {{"pdg", {}}};
  Dataset dataset = Dataset::open(options).value();
  const model::LatentDescription latent{4, {"pdg"}};
  const auto all = judge_dataset(*judge_, dataset, 1000, latent).value().value();
  const auto expected = classified(*judge_, images(kEvents, 7, 5, 11));
  EXPECT_EQ(all.images.named, expected.named);
  EXPECT_EQ(all.images.features.values, expected.features.values);
  EXPECT_THAT(all.columns.at(0), testing::ElementsAreArray(energies));
  const auto some = judge_dataset(*judge_, dataset, 3, latent).value().value();
  EXPECT_THAT(some.energies, testing::ElementsAre(1.0f, 101.0f, 201.0f));
  EXPECT_THAT(some.columns.at(0), testing::ElementsAre(100.0f, 10100.0f, 20100.0f));
  EXPECT_THAT(some.angles, testing::IsEmpty());
  EXPECT_FALSE(judge_dataset(*judge_, dataset, 3, latent, [] { return false; }).value());
}

TEST(ImageJudge, ModelThatTellsNoClassesIsNone) {
  const auto refusal = [](const model::GanDescription& model) {
    const auto judge = ImageJudge::create(model, {weights(), {}});
    return judge.ok() ? std::string() : judge.error().message;
  };
  model::GanDescription model = classifier();
  model.task = model::Task::kDiffusion;
  EXPECT_THAT(refusal(model), HasSubstr("its task is diffusion; a judge is a classifier"));
  model = classifier();
  model.losses[0].kind = LossKind::kHuber;
  EXPECT_THAT(refusal(model), HasSubstr("none of its losses is a cross_entropy"));
  model = classifier();
  model.discriminator.conditions = {"energy"};
  EXPECT_THAT(refusal(model), HasSubstr("it reads energy besides the image"));
  model = classifier();
  model.discriminator.layers.erase(model.discriminator.layers.begin(),
                                   model.discriminator.layers.begin() + 3);
  EXPECT_THAT(refusal(model), HasSubstr("it has no hidden layer"));
  model = classifier();
  model.discriminator.layers[1].kind = model::Dense{5000};
  EXPECT_THAT(refusal(model), HasSubstr("its last hidden layer, known, has 5000 values"));
}

}  // namespace
}  // namespace troupe::pipeline
