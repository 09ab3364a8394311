#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <memory>
#include <numbers>
#include <span>

#include <fmt/format.h>

#include "config/topology_file.h"
#include "launch/backend_choice.h"
#include "main/command_line.h"
#include "main/commands.h"
#include "model/physics/observables.h"
#include "pipeline/checkpoint.h"
#include "pipeline/generation.h"
#include "pipeline/shower_file.h"
#include "runtime/base/disk.h"
#include "runtime/base/json_text.h"

namespace troupe {
namespace {

namespace po = boost::program_options;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

struct Request {
  std::string checkpoint, out;
  double energy_gev = 100.0;
  double angle_degrees = 90.0;
  bool angle_given = false;
  std::uint64_t events = 1000;
  std::uint64_t seed = 1;
  int threads = 1;
};

// A trained generator, ready to make showers.
struct Trained {
  config::Topology topology;
  std::unique_ptr<model::Backend> backend;
  pipeline::TrainingState state;
  std::unique_ptr<pipeline::ShowerMaker> maker;
};

Result<Trained> open_trained(const std::string& path) {
  runtime::FileDisk disk;
  ASSIGN_OR_RETURN(const runtime::Buffer file, disk.read(path));
  ASSIGN_OR_RETURN(const auto summary, pipeline::inspect_checkpoint(file, path));
  ASSIGN_OR_RETURN(auto loaded, config::parse_topology(summary.topology, path + ":/topology", "."));
  Trained trained;
  trained.topology = std::move(loaded.topology);
  trained.backend = launch::make_backend(trained.topology.model.kernels);
  const auto& options = trained.topology.train.options;
  ASSIGN_OR_RETURN(const auto gan, model::Gan::compile(trained.topology.model.gan, *trained.backend,
                                                       options.micro_batch));
  ASSIGN_OR_RETURN(auto checkpoint, pipeline::decode_checkpoint(file, path, *gan, options));
  trained.state = std::move(checkpoint.state);
  return trained;
}

// Showers of one energy and angle, in the units of the schema.
class TrainedShowers final : public pipeline::ShowerSource {
 public:
  TrainedShowers(Trained& trained, const Request& request, bool with_angle)
      : trained_(trained), request_(request), with_angle_(with_angle) {}

  void make(std::uint64_t first, std::span<pipeline::Primary> primaries,
            std::span<float> cells) override {
    const auto energy = static_cast<float>(request_.energy_gev / 100.0);
    const auto angle = static_cast<float>(request_.angle_degrees * std::numbers::pi / 180.0);
    const std::vector<float> energies(primaries.size(), energy);
    const std::vector<float> angles(with_angle_ ? primaries.size() : 0, angle);
    pipeline::GenerationRequest request;
    request.energies = energies;
    request.angles = angles;
    request.seed = request_.seed;
    request.first_event = static_cast<std::uint32_t>(first);
    trained_.maker->make(trained_.state.generator.weights, trained_.state.generator.moving, request,
                         cells);
    const pipeline::DatasetOptions& dataset = trained_.topology.data.dataset;
    model::ImageUnits units = pipeline::image_units(dataset);
    units.units_per_gev = static_cast<double>(dataset.preprocessing->scale);  // stored, not GeV
    model::to_gev(cells, units, cells);
    for (auto& primary : primaries) {
      primary.energy_gev = static_cast<float>(request_.energy_gev);
      primary.theta_rad = with_angle_ ? angle : std::numbers::pi_v<float> / 2;
    }
  }

 private:
  Trained& trained_;
  const Request& request_;
  bool with_angle_;
};

Result<double> generate(const Request& request) {
  if (!(request.energy_gev > 0.0) || request.events == 0 || request.events > UINT32_MAX) {
    return Error{ErrorKind::kUsage, "--energy must be above 0 GeV and --events 1 to 4294967295"};
  }
  if (!(request.angle_degrees > 0.0 && request.angle_degrees < 180.0)) {
    return Error{ErrorKind::kUsage, "--angle must lie between 0 and 180 degrees"};
  }
  ASSIGN_OR_RETURN(Trained trained, open_trained(request.checkpoint));
  trained.backend->prepare_thread();
  runtime::ThreadTeam team(request.threads, [&] { trained.backend->prepare_thread(); });
  ASSIGN_OR_RETURN(trained.maker, pipeline::ShowerMaker::create(trained.topology.model.gan,
                                                                *trained.backend, team));
  const bool with_angle = trained.topology.data.dataset.schema == pipeline::DataSchema::kLcdAngle;
  if (request.angle_given && !with_angle) {
    return Error{ErrorKind::kUsage, "--angle: this model was trained at 90 degrees only"};
  }
  const model::Shape shape = trained.maker->shape();
  pipeline::ShowerFileOptions options;
  options.schema = trained.topology.data.dataset.schema;
  options.shape = {static_cast<std::uint32_t>(shape.space[0]),
                   static_cast<std::uint32_t>(shape.space[1]),
                   static_cast<std::uint32_t>(shape.space[2])};
  options.events = request.events;
  options.attributes = {{"generator", fmt::format("troupe model {} state {}", trained.topology.name,
                                                  pipeline::hash_of_state(trained.state).text())},
                        {"seed", request.seed}};
  TrainedShowers source(trained, request, with_angle);
  const auto start = std::chrono::steady_clock::now();
  auto said = start;
  const auto tell = [&](std::uint64_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (now - said > std::chrono::seconds(2)) {
      said = now;
      std::cerr << fmt::format("{} of {} showers\n", done, request.events);
    }
    return true;
  };
  ASSIGN_OR_RETURN(const runtime::Buffer file,
                   pipeline::compose_shower_file(options, source, team, tell));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  runtime::FileDisk disk;
  RETURN_IF_ERROR(disk.replace(request.out, file.bytes()));
  return seconds;
}

}  // namespace

int generate_command(const Arguments& arguments) {
  CommandLine line("generate CHECKPOINT --out F.h5 [--energy GEV] [--events N] ...",
                   "Makes showers with a trained generator and writes them in the schema it was\n"
                   "trained on.",
                   "troupe generate runs/demo/checkpoints/step-000000000400.h5 --energy 100 "
                   "--events 1000 --out showers.h5");
  line.positional("checkpoint");
  line.add()("out", po::value<std::string>(), "the file to write (HDF5)")(
      "energy", po::value<double>()->default_value(100.0), "of the primary particle, GeV")(
      "angle", po::value<double>(), "of incidence, degrees; models with a variable angle only")(
      "events", po::value<std::uint64_t>()->default_value(1000), "how many")(
      "seed", po::value<std::uint64_t>()->default_value(1), "of the noise")(
      "threads",
      po::value<int>()->default_value(
          static_cast<int>(std::max<long>(1, ::sysconf(_SC_NPROCESSORS_ONLN)))),
      "compute threads; the showers do not depend on it")("json", po::bool_switch(),
                                                          "print one JSON object");
  if (const auto code = line.parse(arguments)) return *code;
  if (!line.has("checkpoint")) return line.usage_error("which checkpoint?");
  if (!line.has("out")) return line.usage_error("--out: which file shall be written?");
  Request request;
  request.checkpoint = line.get<std::string>("checkpoint");
  request.out = line.get<std::string>("out");
  request.energy_gev = line.get<double>("energy");
  request.events = line.get<std::uint64_t>("events");
  request.seed = line.get<std::uint64_t>("seed");
  request.threads = line.get<int>("threads");
  if (request.threads < 1) return line.usage_error("--threads must be 1 or more");
  if (line.has("angle")) {
    request.angle_given = true;
    request.angle_degrees = line.get<double>("angle");
  }
  const auto seconds = generate(request);
  if (!seconds.ok()) return report(seconds.error());
  if (line.get<bool>("json")) {
    std::cout << fmt::format(R"({{"file":{},"events":{},"seconds":{}}})",
                             runtime::json_string(request.out), request.events,
                             runtime::json_number(*seconds))
              << "\n";
  } else {
    std::cout << request.out << "\n";
    std::cerr << fmt::format("{} showers in {:.2f} s\n", request.events, *seconds);
  }
  return 0;
}

}  // namespace troupe
