#include "pipeline/data/measured_showers.h"

#include <algorithm>
#include <numbers>
#include <numeric>

#include <fmt/format.h>

namespace troupe::pipeline {
namespace {

constexpr std::size_t kReadAtOnce = 64;
constexpr std::size_t kMadeAtOnce = 256;
// The unit of energies in the data.
constexpr double kGevPerUnit = 100.0;

runtime::Result<void> check_shape(const Dataset& dataset, const model::Extent& space) {
  const ImageShape& shape = dataset.shape();
  if (shape.channels == 1 && std::ranges::equal(shape.space, space)) return {};
  return runtime::Error{
      runtime::ErrorKind::kData,
      fmt::format("the showers to compare with have {} cells, the others {} x {} x {}",
                  shape.text(), space[0], space[1], space[2])};
}

}  // namespace

runtime::Result<MeasuredData> measure_dataset(Dataset& dataset, const MeasuringOptions& options,
                                              std::uint64_t events, const ShowerWatch& watch,
                                              const Progress& progress) {
  RETURN_IF_ERROR(check_shape(dataset, options.statistics.space));
  const std::size_t all = std::min(events, dataset.size());
  MeasuredData data{model::ShowerSample(options.statistics, options.sketches), {}, {}, {}, {}, {}};
  data.columns.resize(options.columns);
  for (const auto& [name, place] : options.made) data.made.push_back({name, {}});
  const auto& space = options.statistics.space;
  const auto cells = static_cast<std::size_t>(space[0] * space[1] * space[2]);
  std::vector<float> gev(cells);
  for (std::size_t first = 0; first < all; first += kReadAtOnce) {
    std::vector<std::uint64_t> ids(std::min(kReadAtOnce, all - first));
    std::iota(ids.begin(), ids.end(), first);
    Batch batch;
    RETURN_IF_ERROR(dataset.read(ids, batch));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      model::to_gev(batch.images.as<float>().subspan(i * cells, cells), options.units, gev);
      const float energy = batch.energies()[i], angle = batch.angles()[i];
      const auto& found = data.sample.add(gev, kGevPerUnit * static_cast<double>(energy),
                                          std::nullopt, static_cast<double>(angle));
      if (watch) watch(first + i, gev);
      data.energies.push_back(energy);
      if (!options.statistics.angle) continue;
      data.angles.push_back(angle);
      data.measured_angles.push_back(found.angle_rad);
    }
    for (std::size_t k = 0; k < options.columns; ++k) {
      const auto numbers = batch.column(k);
      data.columns[k].insert(data.columns[k].end(), numbers.begin(), numbers.end());
    }
    for (std::size_t k = 0; k < options.made.size(); ++k) {
      const auto numbers = batch.column(options.made[k].second);
      data.made[k].numbers.insert(data.made[k].numbers.end(), numbers.begin(), numbers.end());
    }
    if (progress) {
      RETURN_IF_ERROR(progress(first + ids.size(), all));
    }
  }
  return data;
}

std::optional<model::ShowerSample> measure_generated(
    ShowerMaker& maker, std::span<const float> weights, std::span<const float> moving,
    const MeasuredData& data, const MeasuringOptions& options, std::uint64_t seed,
    const ShowerWatch& watch, const std::function<bool(std::size_t made)>& going_on) {
  model::ShowerSample sample(options.statistics, options.sketches);
  const auto cells = static_cast<std::size_t>(maker.cells());
  const std::size_t all = data.energies.size();
  const std::size_t numbers = maker.columns();
  std::vector<float> images(std::min(kMadeAtOnce, all) * cells), columns(all * numbers);
  GenerationRequest request{data.energies, data.angles};
  request.columns.assign(data.columns.begin(), data.columns.end());
  request.seed = seed;
  request.made = columns;
  for (std::size_t first = 0; first < all; first += kMadeAtOnce) {
    const std::size_t count = std::min(kMadeAtOnce, all - first);
    const std::span<float> made(images.data(), count * cells);
    const auto asked = [&](std::size_t done) { return !going_on || going_on(first + done); };
    if (maker.make(weights, moving, part_of(request, first, count), made, asked) < count) return {};
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<float> gev = made.subspan(i * cells, cells);
      const std::size_t event = first + i;
      if (options.as_made) {
        options.as_made(event, gev, std::span(columns).subspan(event * numbers, numbers));
      }
      model::to_gev(gev, options.units, gev);
      std::optional<double> reference, angle;
      if (!data.angles.empty()) {
        reference = data.measured_angles[event];
        angle = data.angles[event];
      }
      sample.add(gev, kGevPerUnit * static_cast<double>(data.energies[event]), reference, angle);
      if (watch) watch(event, gev);
    }
  }
  return sample;
}

}  // namespace troupe::pipeline
