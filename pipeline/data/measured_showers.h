#pragma once

// Showers of a dataset, and of a generator that is asked for the same conditions, as samples that
// compare.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/physics/column_figures.h"
#include "model/physics/shower_sample.h"
#include "pipeline/data/dataset.h"
#include "pipeline/data/generation.h"
#include "pipeline/data/progress.h"
#include "runtime/base/error.h"

namespace troupe::pipeline {

// Told each shower in turn by its number, in GeV.
using ShowerWatch = std::function<void(std::size_t event, std::span<const float> shower)>;
// Told each generated one, as the networks see it, with the columns that were made with it.
using MadeWatch = std::function<void(std::size_t event, std::span<const float> image,
                                     std::span<const float> columns)>;

struct MeasuringOptions {
  // With `space` of the showers; statistics.angle for models that are told angles.
  model::StatisticsOptions statistics;
  // Of the images as the dataset, or the generator, gives them.
  model::ImageUnits units;
  bool sketches = false;    // see ShowerSample
  std::size_t columns = 0;  // the dataset's first ones, which the generator is told
  // Those that it makes: the name of each, and its place among the dataset's.
  std::vector<std::pair<std::string, std::size_t>> made = {};
  MadeWatch as_made = {};  // may be null
};

// Events of a dataset, and what a generator needs to make showers like them.
struct MeasuredData {
  model::ShowerSample sample;
  std::vector<float> energies;              // E / 100 GeV
  std::vector<float> angles;                // rad; empty without statistics.angle
  std::vector<double> measured_angles;      // of the showers; likewise
  std::vector<std::vector<float>> columns;  // MeasuringOptions::columns of them
  std::vector<model::SampledColumn> made;   // MeasuringOptions::made
};

// The first `events` events (all, if there are fewer). Errors: those of reading, of `progress`, and
// (kData) a dataset whose showers have another shape than statistics.space.
runtime::Result<MeasuredData> measure_dataset(
    Dataset& dataset, const MeasuringOptions& options,
    std::uint64_t events = std::numeric_limits<std::uint64_t>::max(), const ShowerWatch& watch = {},
    const Progress& progress = {});

// A shower for each of `data`, from a generator's state as ShowerMaker has it. Its reference angle
// is the one measured on the data event in the same way, because a measured angle differs from the
// true one where layers are not as deep as cells are wide. `going_on`, if set, is asked as
// ShowerMaker::make() asks, with the showers made; nothing if it says false.
std::optional<model::ShowerSample> measure_generated(
    ShowerMaker& maker, std::span<const float> weights, std::span<const float> moving,
    const MeasuredData& data, const MeasuringOptions& options, std::uint64_t seed,
    const ShowerWatch& watch = {}, const std::function<bool(std::size_t made)>& going_on = {});

}  // namespace troupe::pipeline
