// Losses, accuracy and the area under the curve of a supervised network.

#include "pipeline/data/output_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/pipeline/data_fixture.h"
#include "tests/support/json_value.h"

namespace troupe::pipeline {
namespace {

using model::LossKind;
using model::Target;

constexpr std::size_t kMeasured = 21;  // more than a batch, and none that is whole

// Images of one cell, 1 to 21; events from 11 on are of the second class, but for two.
class OutputMeterTest : public testing::Test {
 protected:
  OutputMeterTest() {
    std::vector<float> cells, energies, kinds;
    for (std::size_t i = 0; i < kMeasured; ++i) {
      cells.push_back(static_cast<float>(i + 1));
      energies.push_back(100.0f * cells.back());
      const bool second = (i >= 10) != (i == 3 || i == 17);
      kinds.push_back(second ? 211.0f : 11.0f);
    }
    Hdf5Scribe file(folder_ / "a.h5");
    file.add("ECAL", {kMeasured, 1, 1, 1}, cells);
    file.add("energy", {kMeasured}, energies);
    file.add("pdg", {kMeasured}, kinds);
  }

  Dataset dataset() const {
    DatasetOptions options;
    options.paths = {folder_ / "a.h5"};
    options.schema = DataSchema::kCustom;
    options.names.emplace().energy = "energy";
    options.columns = {{"pdg", {11, 211}}};
    auto opened = Dataset::open(options);
    CHECK(opened.ok(), opened.ok() ? "" : opened.error().message);
    return std::move(opened).value();
  }

  // Logits (0, cell - 10.5), and the energy as the cell plus a half.
  OutputQuality measure(std::uint64_t events) const {
    const std::vector<float> weights{0, 1, 0, -10.5f, 1, 0.5f};
    return measure(task(), weights, events);
  }

  OutputQuality measure(const model::GanDescription& task, std::span<const float> weights,
                        std::uint64_t events) const {
    const auto backend = model::make_reference_backend(model::DataType::kFloat32);
    const auto meter = OutputMeter::create(task, *backend).value();
    Dataset data = dataset();
    return *meter->measure(weights, {}, data, events).value();
  }

  static model::GanDescription task() {
    model::GanDescription task;
    task.task = model::Task::kSupervised;
    task.discriminator = {"network", model::Shape::image({1, 1, 1}, 1), {}, {}};
    task.discriminator.layers = {{"flat", model::Flatten{}, ""},
                                 {"kind", model::Dense{2}, "flat"},
                                 {"energy", model::Dense{1}, "flat"}};
    task.discriminator.outputs = {"kind", "energy"};
    task.losses = {{"kind", LossKind::kClassCrossentropy, Target::kColumn, 3.0, "pdg", {11, 211}},
                   {"energy", LossKind::kMeanAbsoluteError, Target::kEnergy, 2.0}};
    return task;
  }

  TemporaryFolder folder_;
};

TEST_F(OutputMeterTest, CountsRightClassesAndRanksThem) {
  const OutputQuality found = measure(kMeasured);
  EXPECT_EQ(found.events, kMeasured);
  ASSERT_EQ(found.terms.size(), 2u);
  EXPECT_NEAR(found.terms[0].accuracy.value(), 19.0 / 21.0, 1e-12);
  // Scores rise with the number of the event.
  std::uint64_t ahead = 0, pairs = 0;
  for (std::size_t a = 0; a < kMeasured; ++a) {
    for (std::size_t b = 0; b < kMeasured; ++b) {
      const auto second = [](std::size_t i) { return (i >= 10) != (i == 3 || i == 17); };
      if (second(a) || !second(b)) continue;
      ++pairs;
      ahead += b > a ? 1 : 0;
    }
  }
  EXPECT_NEAR(found.terms[0].area.value(), static_cast<double>(ahead) / static_cast<double>(pairs),
              1e-12);
  double loss = 0.0;
  for (std::size_t i = 0; i < kMeasured; ++i) {
    const double logit = static_cast<double>(i) - 9.5;
    const bool second = (i >= 10) != (i == 3 || i == 17);
    loss += std::log1p(std::exp(second ? -logit : logit)) / kMeasured;
  }
  EXPECT_NEAR(found.terms[0].loss, loss, 1e-6);
  EXPECT_NEAR(found.terms[1].loss, 0.5, 1e-6);
  EXPECT_FALSE(found.terms[1].accuracy || found.terms[1].area);
  EXPECT_NEAR(found.loss, 3.0 * loss + 2.0 * 0.5, 1e-5);
}

// It answers with the last of the numbers that it is told, which are each event's own.
TEST_F(OutputMeterTest, NetworkIsToldTheConditionsOfEachEvent) {
  model::GanDescription told = task();
  told.discriminator.conditions = {"energy", "pdg"};
  told.discriminator.layers = {{"answer", model::Slice{model::Axis::kChannels, 1, 1}, "conditions"},
                               {"energy", model::Slice{model::Axis::kChannels, 0, 1}, "conditions"},
                               {"sum", model::Sum{}, "input"}};
  told.discriminator.outputs = {"answer", "energy", "sum"};
  told.losses = {{"answer", LossKind::kMeanAbsoluteError, Target::kColumn, 1.0, "pdg"},
                 {"energy", LossKind::kMeanAbsoluteError, Target::kEnergy, 1.0},
                 {"sum", LossKind::kMeanAbsoluteError, Target::kEcal, 1.0}};
  for (const TermQuality& term : measure(told, {}, kMeasured).terms) {
    EXPECT_EQ(term.loss, 0.0) << term.output;
  }
}

TEST_F(OutputMeterTest, EventsOfOneClassHaveNoArea) {
  const OutputQuality found = measure(1);
  EXPECT_EQ(found.events, 1u);
  EXPECT_FALSE(found.terms[0].area);
  EXPECT_EQ(found.terms[0].accuracy, 1.0);
}

// Files may be of one class each, so a part of the events is one of all files: 0, 7 and 14 of 21.
TEST_F(OutputMeterTest, SomeEventsAreTakenEvenly) {
  const OutputQuality found = measure(3);
  EXPECT_EQ(found.events, 3u);
  EXPECT_EQ(found.terms[0].area, 1.0);
}

TEST_F(OutputMeterTest, TellsPeopleAndMachines) {
  const OutputQuality found = measure(kMeasured);
  EXPECT_THAT(quality_text(found), testing::HasSubstr("90.48%"));
  const JsonValue json = parse_json(quality_json(found, "loss"));
  const JsonValue& row = json["rows"].list().front();
  EXPECT_EQ(row["events"].integer(), kMeasured);
  EXPECT_NEAR(row["comparison"]["kind/accuracy"].number(), 19.0 / 21.0, 1e-6);
  EXPECT_NEAR(row["comparison"]["loss"].number(), found.loss, 1e-6);
  EXPECT_NEAR(row["chosen"]["distance"].number(), found.loss, 1e-6);
  const JsonValue by_area = parse_json(quality_json(found, "kind/area"));
  const JsonValue& chosen = by_area["rows"].list().front()["chosen"];
  EXPECT_EQ(chosen["title"].text(), "kind's area of test events");
  EXPECT_NEAR(chosen["value"].number(), *found.terms[0].area, 1e-6);
  EXPECT_NEAR(chosen["distance"].number(), 1.0 - *found.terms[0].area, 1e-6);
}

TEST_F(OutputMeterTest, EachWordIsAFigureWithItsDistance) {
  const OutputQuality found = measure(kMeasured);
  EXPECT_THAT(quality_words(task()), testing::ElementsAre("loss", "kind/loss", "kind/accuracy",
                                                          "kind/area", "energy/loss"));
  for (const std::string& word : quality_words(task())) {
    EXPECT_TRUE(quality_of(found, word).has_value()) << word;
  }
  EXPECT_EQ(quality_distance(found, "kind/accuracy"), 2.0 / 21.0) << "1 - 19.0 / 21.0 is another";
  EXPECT_EQ(quality_distance(found, "energy/loss"), found.terms[1].loss);
  EXPECT_EQ(quality_distance(found, "energy/accuracy"), INFINITY);
  OutputQuality broken = found;
  broken.loss = NAN;
  EXPECT_EQ(quality_distance(broken, "kind/accuracy"), INFINITY) << "outputs are no numbers";
}

// A probability has two classes, and three classes have no curve.
TEST_F(OutputMeterTest, AreaIsOfTwoClasses) {
  model::GanDescription other = task();
  other.discriminator.layers[1].kind = model::Dense{3};
  other.losses[0].classes = {11, 22, 211};
  other.losses[1] = {"energy", LossKind::kLogisticCrossentropy, Target::kColumn, 1.0, "pdg"};
  EXPECT_THAT(quality_words(other),
              testing::ElementsAre("loss", "kind/loss", "kind/accuracy", "energy/loss",
                                   "energy/accuracy", "energy/area"));
}

}  // namespace
}  // namespace troupe::pipeline
