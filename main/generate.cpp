#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <numbers>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "config/topology_file.h"
#include "launch/machine/usable_machine.h"
#include "launch/run/backend_choice.h"
#include "main/command_line.h"
#include "main/common_options.h"
#include "main/files.h"
#include "model/physics/observables.h"
#include "pipeline/checkpoint/checkpoint.h"
#include "pipeline/data/generation.h"
#include "pipeline/data/shower_file.h"
#include "runtime/base/clock.h"
#include "runtime/base/disk.h"
#include "runtime/base/json_text.h"

namespace troupe {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr double kLeastEnergyGev = 1e-3;
constexpr double kMostEnergyGev = 1e6;

// A trained generator, ready to make showers.
struct Trained {
  config::Topology topology;
  std::unique_ptr<model::Backend> backend;
  pipeline::TrainingState state;
  std::unique_ptr<pipeline::ShowerMaker> maker;
};

// The tensors of a checkpoint can be read only for compiled networks, and these stand in its
// topology, so its summary is read first.
Result<Trained> open_trained(const std::string& path, const std::string& device) {
  runtime::FileDisk disk;
  ASSIGN_OR_RETURN(const runtime::Buffer file, disk.read(path));
  ASSIGN_OR_RETURN(const auto summary, pipeline::inspect_checkpoint(file, path));
  ASSIGN_OR_RETURN(auto loaded, config::parse_topology(summary.topology, path + ":/topology", "."));
  Trained trained;
  trained.topology = std::move(loaded.topology);
  // The one that it was trained on may not be here; the bits are the same.
  trained.topology.replica.device = device;
  ASSIGN_OR_RETURN(trained.backend, launch::make_backend(trained.topology));
  const auto& options = trained.topology.train.options;
  ASSIGN_OR_RETURN(const auto gan, model::Gan::compile(trained.topology.model.gan, *trained.backend,
                                                       options.micro_batch));
  ASSIGN_OR_RETURN(auto checkpoint, pipeline::decode_checkpoint(file, path, *gan, options));
  trained.state = std::move(checkpoint.state);
  return trained;
}

// Whether the showers it was trained on came at angles that it was told.
bool knows_angles(const config::Topology& topology) {
  const pipeline::DatasetOptions& dataset = topology.data.dataset;
  const auto names = dataset.names.value_or(pipeline::default_names(dataset.schema));
  return model::uses_angle(topology.model.gan.latent) && !names.angle.empty();
}

// The schema to write: that of the training data, or the one that can hold what a model of custom
// data knows.
pipeline::DataSchema written_schema(const config::Topology& topology) {
  const pipeline::DataSchema schema = topology.data.dataset.schema;
  if (schema != pipeline::DataSchema::kCustom) return schema;
  return knows_angles(topology) ? pipeline::DataSchema::kLcdAngle : pipeline::DataSchema::kLcdFixed;
}

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

// In degrees; models without angles were trained at 90.
double angle_of(const CommandLine& line) {
  return line.has("angle") ? line.get<double>("angle") : 90.0;
}

// Showers of one energy and angle, in the units of the schema.
class TrainedShowers {
 public:
  // By --energy, --angle and --seed of the words.
  TrainedShowers(Trained& trained, const CommandLine& line)
      : trained_(trained),
        energy_gev_(line.get<double>("energy")),
        angle_degrees_(angle_of(line)),
        seed_(line.get<std::uint64_t>("seed")),
        units_(stored_units(trained.topology.data.dataset, written_schema(trained.topology))),
        with_angle_(model::uses_angle(trained.topology.model.gan.latent)) {}

  // Networks take energies in units of 100 GeV. The noise of an event follows from its number, so
  // it does not matter how events are divided into calls.
  void make(std::uint64_t first, std::span<pipeline::Primary> primaries, std::span<float> cells) {
    const auto energy = static_cast<float>(energy_gev_ / 100.0);
    const auto angle = static_cast<float>(angle_degrees_ * std::numbers::pi / 180.0);
    const std::vector<float> energies(primaries.size(), energy);
    const std::vector<float> angles(with_angle_ ? primaries.size() : 0, angle);
    pipeline::GenerationRequest request;
    request.energies = energies;
    request.angles = angles;
    request.seed = seed_;
    request.first_event = static_cast<std::uint32_t>(first);
    trained_.maker->make(trained_.state.generator.weights, trained_.state.generator.moving, request,
                         cells);
    model::to_gev(cells, units_, cells);
    const auto bad =
        std::find_if(cells.begin(), cells.end(), [](float cell) { return !std::isfinite(cell); });
    if (bad != cells.end() && !bad_event_) {
      const std::size_t image = cells.size() / primaries.size();
      bad_event_ = first + static_cast<std::uint64_t>(bad - cells.begin()) / image;
    }
    for (auto& primary : primaries) {
      primary.energy_gev = static_cast<float>(energy_gev_);
      primary.theta_rad = with_angle_ ? angle : std::numbers::pi_v<float> / 2;
    }
  }

  // The first that has a cell which is no number.
  const std::optional<std::uint64_t>& bad_event() const { return bad_event_; }

 private:
  Trained& trained_;
  const double energy_gev_;
  const double angle_degrees_;
  const std::uint64_t seed_;
  model::ImageUnits units_;
  bool with_angle_;
  std::optional<std::uint64_t> bad_event_;
};

// Refuses what can be refused before anything is read.
Result<void> check(const CommandLine& line, const std::string& checkpoint) {
  const auto energy_gev = line.get<double>("energy");
  if (!(energy_gev >= kLeastEnergyGev && energy_gev <= kMostEnergyGev)) {
    return Error{ErrorKind::kUsage, fmt::format("--energy must be {} to {} GeV, not {}",
                                                kLeastEnergyGev, kMostEnergyGev, energy_gev)};
  }
  const double angle = angle_of(line);
  if (!(angle > 0.0 && angle < 180.0)) {
    return Error{ErrorKind::kUsage, "--angle must lie between 0 and 180 degrees"};
  }
  const auto out = line.get<std::string>("out");
  std::error_code missing;
  if (std::filesystem::equivalent(checkpoint, out, missing)) {
    return Error{ErrorKind::kUsage,
                 fmt::format("--out {} is the checkpoint itself; name another file", out)};
  }
  return check_output_file(out, line.get<bool>("force"));
}

// Returns how many seconds it took.
Result<double> generate(const CommandLine& line, const std::string& checkpoint) {
  RETURN_IF_ERROR(check(line, checkpoint));
  std::string device = config::kProcessor;
  line.take("device", device);
  ASSIGN_OR_RETURN(Trained trained, open_trained(checkpoint, device));
  trained.backend->prepare_thread();
  const auto threads = line.get<int>("threads");
  runtime::ThreadTeam team(threads, [&] { trained.backend->prepare_thread(); });
  report_threads(threads, team.threads());
  ASSIGN_OR_RETURN(trained.maker, pipeline::ShowerMaker::create(trained.topology.model.gan,
                                                                *trained.backend, team));
  if (line.has("angle") && !knows_angles(trained.topology)) {
    return Error{ErrorKind::kUsage, "--angle: this model was trained without angles"};
  }
  const model::Shape shape = trained.maker->shape();
  pipeline::ShowerFileOptions options;
  options.schema = written_schema(trained.topology);
  options.shape = {static_cast<std::uint32_t>(shape.space[0]),
                   static_cast<std::uint32_t>(shape.space[1]),
                   static_cast<std::uint32_t>(shape.space[2])};
  options.events = line.get<std::uint64_t>("events");
  options.attributes = {{"generator", fmt::format("troupe model {} state {}", trained.topology.name,
                                                  pipeline::hash_of_state(trained.state).text())},
                        {"seed", line.get<std::uint64_t>("seed")}};
  TrainedShowers source(trained, line);
  const auto start = runtime::steady_now();
  // A generator that has diverged, or memory that runs out, ends the work at the next report of
  // its progress, and leaves no file.
  const auto tell = event_progress([&]() -> Result<void> {
    if (source.bad_event()) {
      return Error{ErrorKind::kDiverged,
                   fmt::format("{}: its generator makes NaN or infinite cells (event {}); take an "
                               "older checkpoint of the run",
                               checkpoint, *source.bad_event())};
    }
    return launch::check_room_for_file("make fewer --events at a time, each with another --seed");
  });
  const pipeline::ShowerSource make = [&](auto first, auto primaries, auto cells) {
    source.make(first, primaries, cells);
  };
  ASSIGN_OR_RETURN(const runtime::Buffer file,
                   pipeline::compose_shower_file(options, make, team, tell));
  const double seconds = std::chrono::duration<double>(runtime::steady_now() - start).count();
  runtime::FileDisk disk;
  RETURN_IF_ERROR(disk.replace(line.get<std::string>("out"), file.bytes()));
  return seconds;
}

int generate_showers(const CommandLine& line) {
  if (!line.has("out")) return line.usage_error("--out: which file shall be written?");
  runtime::FileDisk disk;
  const auto checkpoint = checkpoint_at(line.get<std::string>("checkpoint"), disk);
  if (!checkpoint.ok()) return report(checkpoint.error());
  const auto seconds = generate(line, *checkpoint);

  if (!seconds.ok()) return report(seconds.error());
  const auto out = line.get<std::string>("out");
  const auto events = line.get<std::uint64_t>("events");
  if (line.get<bool>("json")) {
    answer(fmt::format(R"("file":{},"checkpoint":{},"events":{},"seconds":{})",
                       runtime::json_string(out), runtime::json_string(*checkpoint), events,
                       runtime::json_number(*seconds)));
  } else {
    std::cout << out << "\n";
    std::cerr << fmt::format("{} showers in {:.2f} s\n", events, *seconds);
  }
  return 0;
}

std::vector<Option> generate_options() {
  return {
      {.name = "out", .value = "FILE", .about = "the file to write (HDF5)", .takes = Takes::kFile},
      {.name = "energy",
       .value = "GEV",
       .about = "of the primary particle; 0.001 to 1e6",
       .takes = Takes::kNumber,
       .preset = "100"},
      {.name = "angle",
       .value = "DEGREES",
       .about = "of incidence; models with a variable angle only",
       .takes = Takes::kNumber},
      events_option(1),
      seed_option("of the noise"),
      threads_option("compute threads; the showers do not depend on it"),
      device_option("cpu"),
      force_option(),
      json_option()};
}

}  // namespace

Command generate_verb() {
  return {.name = "generate",
          .summary = "showers from a trained generator",
          .about =
              "Makes showers with a trained generator and writes them in the schema it was "
              "trained on; for one trained on a custom schema in lcd-fixed, or in lcd-angle when "
              "it was told angles, taking its cells for GeV. A run's folder stands for its best "
              "checkpoint, or the newest where none was validated.",
          .example = "troupe generate runs/demo --energy 100 --events 1000 --out showers.h5",
          .forms = {"CHECKPOINT --out FILE [OPTION]..."},
          .places = {{.name = "checkpoint", .asked = "which checkpoint?", .takes = Takes::kFile}},
          .options = generate_options(),
          .synonyms = {"sample"},
          .carry_out = generate_showers};
}

}  // namespace troupe
