#include "launch/run/validator_bins.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "model/physics/observables.h"
#include "pipeline/data/generation.h"

namespace troupe::launch {
namespace {

using runtime::Result;

constexpr double kGevPerUnit = 100.0;  // of energies in the data
constexpr std::size_t kReadAtOnce = 64;

Result<std::vector<double>> angles_of(pipeline::Dataset& data, std::uint64_t events) {
  std::vector<double> found;
  for (std::uint64_t first = 0; first < events; first += kReadAtOnce) {
    std::vector<std::uint64_t> ids(std::min<std::uint64_t>(kReadAtOnce, events - first));
    std::iota(ids.begin(), ids.end(), first);
    pipeline::Batch batch;
    RETURN_IF_ERROR(data.read(ids, batch));
    for (const float angle : batch.angles()) found.push_back(static_cast<double>(angle));
  }
  return found;
}

void tell_empty(std::string_view field, const char* unit,
                const config::ValidatorSection::Bins& bins, const std::vector<double>& values,
                const config::Origins& origins, runtime::Log& log) {
  if (values.empty()) return;
  const auto [least, largest] = std::ranges::minmax(values);
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const double low = bins[i][0], high = bins[i][1];
    const auto inside = [&](double value) { return value >= low && value <= high; };
    if (std::ranges::any_of(values, inside)) continue;
    const std::string what = fmt::format(
        "no event of those for testing has {:.6g} to {:.6g} {}; they have {:.4g} to "
        "{:.4g}",
        low, high, unit, least, largest);
    log.warning(
        config::problem_of(origins, fmt::format("actors.validator.{}.{}", field, i), what).text());
  }
}

// The fault of the threshold; "": some cells of the first events are hits, and some are not.
Result<std::string> misfit_of(double threshold_gev, const pipeline::DatasetOptions& options,
                              pipeline::Dataset& data, std::uint64_t events) {
  std::vector<std::uint64_t> ids(std::min<std::uint64_t>(kReadAtOnce, events));
  std::iota(ids.begin(), ids.end(), 0);
  pipeline::Batch batch;
  RETURN_IF_ERROR(data.read(ids, batch));
  const auto cells = batch.images.as<float>();
  std::vector<float> gev(cells.size());
  model::to_gev(cells, pipeline::image_units(options), gev);
  const auto hits =
      std::ranges::count_if(gev, [&](float cell) { return double{cell} > threshold_gev; });
  if (hits > 0 && hits < std::ssize(gev)) return std::string();
  return fmt::format(
      "{} cell of the first {} events for testing is above {:.4g} GeV; the largest "
      "has {:.4g}",
      hits == 0 ? "no" : "every", ids.size(), threshold_gev, std::ranges::max(gev));
}

}  // namespace

Result<void> warn_of_misfits(const config::Topology& topology, const config::Origins& origins,
                             std::optional<pipeline::Dataset>& test, runtime::Log& log) {
  if (!test) return {};
  const config::ValidatorSection& validator = topology.validator;
  const std::uint64_t events = std::min(validator.events, test->size());
  if (validator.energy_bins != config::ValidatorSection{}.energy_bins) {
    std::vector<double> energies;
    for (std::uint64_t i = 0; i < events; ++i) {
      energies.push_back(kGevPerUnit * static_cast<double>(test->energy(i)));
    }
    tell_empty("energy_bins", "GeV", validator.energy_bins, energies, origins, log);
  }
  if (!validator.angle_bins.empty()) {
    ASSIGN_OR_RETURN(const std::vector<double> angles, angles_of(*test, events));
    tell_empty("angle_bins", "rad", validator.angle_bins, angles, origins, log);
  }
  if (validator.hit_threshold_gev == config::ValidatorSection{}.hit_threshold_gev) return {};
  ASSIGN_OR_RETURN(const std::string misfit,
                   misfit_of(validator.hit_threshold_gev, topology.data.dataset, *test, events));
  if (misfit.empty()) return {};
  log.warning(config::problem_of(origins, "actors.validator.hit_threshold", misfit).text());
  return {};
}

}  // namespace troupe::launch
