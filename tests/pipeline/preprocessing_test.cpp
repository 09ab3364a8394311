#include "pipeline/data/preprocessing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "pipeline/data/packed_events.h"
#include "runtime/base/math.h"

namespace troupe::pipeline {
namespace {

constexpr ImageShape kShape{{2, 3, 4}};

StoredEvent event_of(const std::vector<float>& cells) { return {cells, 100.0, 1.5}; }

TEST(Preprocessing, LcdFixedCutsCellsUnderAMillionthAndScales) {
  Preprocessing fixed = default_preprocessing(DataSchema::kLcdFixed);
  EXPECT_EQ(preprocess_cell(9e-7f, fixed), 0.0f);
  EXPECT_EQ(preprocess_cell(1e-6f, fixed), 1e-6f);
  EXPECT_EQ(preprocess_cell(0.25f, fixed), 0.25f);
  fixed.scale = 100;
  EXPECT_EQ(preprocess_cell(0.25f, fixed), 25.0f);
  const EventVerdict verdict = judge_event(event_of(std::vector<float>{0.25f, 9e-7f, 0.5f}), fixed);
  EXPECT_EQ(verdict.state, EventState::kAccepted);
  EXPECT_EQ(verdict.ecal, 75.0f);
}

TEST(Preprocessing, LcdAngleSumsBeforeThePowerAndKeepsEventsAboveTen) {
  const Preprocessing angle = default_preprocessing(DataSchema::kLcdAngle);
  EXPECT_EQ(preprocess_cell(2.0f, angle), static_cast<float>(runtime::math::pow(2.0, 0.85)));
  EXPECT_EQ(preprocess_cell(0.0f, angle), 0.0f);
  const EventVerdict above = judge_event(event_of({4.0f, 6.5f}), angle);
  EXPECT_EQ(above.state, EventState::kAccepted);
  EXPECT_EQ(above.ecal, 10.5f);
  EXPECT_EQ(judge_event(event_of({4.0f, 6.0f}), angle).state, EventState::kCut);
}

TEST(Preprocessing, EmptyImageIsKeptWhereThereIsNoCut) {
  EXPECT_EQ(judge_event(event_of(std::vector<float>(24, 0.0f)), Preprocessing{}).state,
            EventState::kAccepted);
}

TEST(Preprocessing, BadCellsAreFoundWhereverTheyStandAndNamedByPlace) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {kNan, kInfinity, -1e-9f}) {
    for (const std::size_t place : {0u, 5u, 17u, 23u}) {
      std::vector<float> cells(24, 1.0f);
      cells[place] = bad;
      EXPECT_EQ(judge_event(event_of(cells), Preprocessing{}).state, EventState::kBad) << place;
    }
  }
  std::vector<float> cells(24, 1.0f);
  cells[1 * 12 + 2 * 4 + 3] = kNan;
  const BadEvent bad = describe_bad_event(event_of(cells), {}, kShape);
  EXPECT_EQ(bad.part, EventPart::kImage);
  EXPECT_EQ(bad.text, "cell (1, 2, 3) is nan; expected finite cells of 0 or more");
}

TEST(Preprocessing, BadConditionsAreNamed) {
  const std::vector<float> cells(24, 1.0f);
  for (const double energy : {0.0, -5.0, std::nan(""), HUGE_VAL}) {
    const StoredEvent event{cells, energy, 1.5};
    ASSERT_EQ(judge_event(event, Preprocessing{}).state, EventState::kBad) << energy;
    EXPECT_EQ(describe_bad_event(event, {}, kShape).part, EventPart::kEnergy);
  }
  for (const double angle : {0.0, 3.2, std::nan("")}) {
    const StoredEvent event{cells, 100.0, angle};
    ASSERT_EQ(judge_event(event, Preprocessing{}).state, EventState::kBad) << angle;
    EXPECT_EQ(describe_bad_event(event, {}, kShape).part, EventPart::kAngle);
  }
}

// Training sees 32-bit floats of E / 100 and of the cells after scale and power.
TEST(Preprocessing, WhatOverflowsOrVanishesAsFloatIsBad) {
  const std::vector<float> cells(24, 1.0f);
  for (const double energy : {1e100, 1e41, 1e-37, 1e-50}) {
    const StoredEvent event{cells, energy, 1.5};
    EXPECT_EQ(judge_event(event, {}).state, EventState::kBad) << energy;
  }
  EXPECT_EQ(judge_event({cells, 100.0, 1e-50}, {}).state, EventState::kBad);
  EXPECT_EQ(judge_event({cells, 1e40, 1.5}, {}).state, EventState::kAccepted);
  EXPECT_EQ(judge_event({cells, 1e-35, 1.5}, {}).state, EventState::kAccepted);

  EXPECT_EQ(judge_event(event_of({3e38f, 1.0f}), {}).state, EventState::kAccepted);
  EXPECT_EQ(judge_event(event_of({3e38f, 3e38f}), {}).state, EventState::kBad);
  EXPECT_EQ(judge_event(event_of({1e37f, 1.0f}), {.scale = 50}).state, EventState::kBad);
  EXPECT_EQ(judge_event(event_of({1e20f, 1.0f}), {.power = 0.85}).state, EventState::kAccepted);
  EXPECT_EQ(judge_event(event_of({1e20f, 1.0f}), {.power = 2}).state, EventState::kBad);
  // Cut or not: what is bad is so whatever the cut.
  EXPECT_EQ(judge_event(event_of({3e38f, 3e38f}), {.min_ecal = 10}).state, EventState::kBad);
}

TEST(PackedEvents, UnpackGivesThePreprocessedImages) {
  Preprocessing rules;
  rules.threshold = 0.3f;
  rules.power = 0.85;
  for (const std::size_t cells : {60u, 64u, 130u}) {
    std::vector<std::vector<float>> images;
    for (std::size_t event = 0; event < 5; ++event) {
      std::vector<float> image(cells);
      for (std::size_t i = 0; i < cells; ++i) {
        image[i] = static_cast<float>((i * 7 + event) % 5) / 4;
      }
      images.push_back(image);
    }
    const std::vector<std::span<const float>> stored(images.begin(), images.end());
    const PackedEvents events(stored, rules);
    ASSERT_EQ(events.events(), 5u);
    std::vector<float> out(cells, -1.0f);
    for (const std::size_t event : {3u, 0u, 4u}) {
      events.unpack(event, out);
      for (std::size_t i = 0; i < cells; ++i) {
        ASSERT_EQ(out[i], preprocess_cell(images[event][i], rules)) << i;
      }
    }
  }
}

}  // namespace
}  // namespace troupe::pipeline
