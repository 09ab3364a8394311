#include "main/trained_showers.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "model/streams.h"

namespace troupe {
namespace {

constexpr double kRadiansPerDegree = std::numbers::pi / 180.0;

// From images as the generator makes them to cells as `schema` stores them.
model::ImageUnits stored_units(const pipeline::DatasetOptions& trained_on,
                               pipeline::DataSchema schema) {
  pipeline::DatasetOptions plain;
  plain.schema = schema;
  plain.preprocessing.emplace();
  model::ImageUnits units = pipeline::image_units(trained_on);
  units.units_per_gev /= pipeline::image_units(plain).units_per_gev;
  return units;
}

}  // namespace

pipeline::DataSchema written_schema(const config::Topology& topology) {
  const pipeline::DataSchema schema = topology.data.dataset.schema;
  if (schema == pipeline::DataSchema::kLcdFixed || schema == pipeline::DataSchema::kLcdAngle) {
    return schema;
  }
  return launch::knows_angles(topology) ? pipeline::DataSchema::kLcdAngle
                                        : pipeline::DataSchema::kLcdFixed;
}

runtime::Result<std::unique_ptr<DeviceMakers>> DeviceMakers::create(
    const model::GanDescription& model, std::span<const model::Backend* const> backends,
    runtime::ThreadTeam& team) {
  auto makers = std::make_unique<DeviceMakers>();
  const int devices = static_cast<int>(backends.size());
  for (const model::Backend* backend : backends) {
    auto device = std::make_unique<Device>(*backend);
    if (devices > 1) {
      device->own_team.emplace(std::max(team.threads() / devices, 1),
                               [backend] { backend->prepare_thread(); });
    }
    ASSIGN_OR_RETURN(device->maker,
                     pipeline::ShowerMaker::create(model, *backend,
                                                   device->own_team ? *device->own_team : team));
    makers->all_.push_back(std::move(device));
  }
  makers->callers_.emplace(devices);
  return makers;
}

void DeviceMakers::make(std::span<const float> weights, std::span<const float> moving,
                        const pipeline::GenerationRequest& request, std::span<float> images) {
  const std::size_t events = request.energies.size(), devices = all_.size();
  const std::size_t image = images.size() / events;
  callers_->run(static_cast<std::int64_t>(devices), [&](std::int64_t device, int) {
    const auto i = static_cast<std::size_t>(device);
    const std::size_t first = events * i / devices, count = events * (i + 1) / devices - first;
    if (count == 0) return;
    all_[i]->events += count;
    all_[i]->backend.prepare_thread();
    all_[i]->maker->make(weights, moving, pipeline::part_of(request, first, count),
                         images.subspan(first * image, count * image));
  });
}

std::vector<std::uint64_t> DeviceMakers::events() const {
  std::vector<std::uint64_t> events;
  for (const auto& device : all_) events.push_back(device->events);
  return events;
}

TrainedShowers::TrainedShowers(const launch::Trained& trained, DeviceMakers& makers,
                               runtime::ThreadTeam& team, const WantedShowers& wanted,
                               std::uint64_t seed)
    : trained_(trained),
      makers_(makers),
      team_(team),
      wanted_(wanted),
      seed_(seed),
      units_(stored_units(trained.topology.data.dataset, written_schema(trained.topology))),
      with_angle_(model::uses_angle(trained.topology.model.gan.latent)) {}

// Networks take energies in units of 100 GeV.
void TrainedShowers::make(std::uint64_t first, std::span<pipeline::Primary> primaries,
                          std::span<float> cells, std::span<double> written) {
  first += wanted_.first;
  std::vector<float> energies, angles;
  std::vector<std::vector<float>> columns(wanted_.laws.columns.size());
  const std::size_t numbers = makers_.columns(), width = columns.size() + numbers;
  for (std::size_t i = 0; i < primaries.size(); ++i) {
    const std::uint64_t event = first + i;
    const auto position = pipeline::event_position(seed_, event, model::kSpectrumStream);
    const double energy = wanted_.laws.energy.at(event, runtime::random_uniform(position, 0));
    const double angle =
        wanted_.laws.angle.at(event, runtime::random_uniform(position, 1)) * kRadiansPerDegree;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      const double u = runtime::random_uniform(position, static_cast<std::uint32_t>(2 + k));
      columns[k].push_back(static_cast<float>(wanted_.laws.columns[k].second.at(event, u)));
      written[i * width + k] = static_cast<double>(columns[k].back());
    }
    energies.push_back(static_cast<float>(energy / 100.0));
    if (with_angle_) angles.push_back(static_cast<float>(angle));
    primaries[i].energy_gev = static_cast<float>(energy);
    primaries[i].theta_rad = with_angle_ ? angles.back() : std::numbers::pi_v<float> / 2;
  }
  pipeline::GenerationRequest request;
  request.energies = energies;
  request.angles = angles;
  request.columns.assign(columns.begin(), columns.end());
  request.seed = seed_;
  request.first_event = first;
  std::vector<float> made(primaries.size() * numbers);
  request.made = made;
  const pipeline::NetworkState& network = trained_.maker();
  makers_.make(network.weights, network.moving, request, cells);
  for (std::size_t i = 0; i < primaries.size(); ++i) {
    const auto own = std::span(made).subspan(i * numbers, numbers);
    std::ranges::copy(own, written.subspan(i * width + columns.size(), numbers).begin());
  }
  convert(first, primaries.size(), cells, made);
}

std::optional<std::uint64_t> TrainedShowers::bad_event() const {
  const std::uint64_t bad = bad_event_;
  return bad == UINT64_MAX ? std::nullopt : std::optional(bad);
}

void TrainedShowers::convert(std::uint64_t first, std::size_t events, std::span<float> cells,
                             std::span<const float> made) {
  const std::size_t image = cells.size() / events, numbers = made.size() / events;
  team_.run(static_cast<std::int64_t>(events), [&](std::int64_t i, int) {
    const auto own = cells.subspan(static_cast<std::size_t>(i) * image, image);
    model::to_gev(own, units_, own);
    const auto columns = made.subspan(static_cast<std::size_t>(i) * numbers, numbers);
    const auto is_finite = [](float number) { return std::isfinite(number); };
    if (std::ranges::all_of(own, is_finite) && std::ranges::all_of(columns, is_finite)) return;
    const std::uint64_t event = first + static_cast<std::uint64_t>(i);
    for (std::uint64_t least = bad_event_; event < least;) {
      if (bad_event_.compare_exchange_weak(least, event)) break;
    }
  });
}

}  // namespace troupe
