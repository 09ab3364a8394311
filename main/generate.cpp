#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launch/run/backend_choice.h"
#include "launch/run/trained.h"
#include "main/command_line.h"
#include "main/common_options.h"
#include "main/ending_signal.h"
#include "main/files.h"
#include "main/trained_showers.h"
#include "pipeline/data/condition_law.h"
#include "pipeline/data/dataset_file.h"
#include "pipeline/data/generation.h"
#include "pipeline/data/int8_generation.h"
#include "pipeline/data/shower_file.h"
#include "runtime/base/clock.h"
#include "runtime/base/disk.h"
#include "runtime/base/json_text.h"

namespace troupe {
namespace {

using launch::Computing;
using launch::Trained;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr double kLeastEnergyGev = 1e-3;
constexpr double kMostEnergyGev = 1e6;
constexpr std::uint64_t kMostFiles = 100'000;
constexpr std::uint64_t kMostEvents = 1'000'000'000'000;

// In degrees; models without angles were trained at 90.
std::string angle_text(const CommandLine& line) {
  return line.has("angle") ? line.get<std::string>("angle") : "90";
}

Result<pipeline::ConditionLaw> law_of(const std::string& option, const std::string& text) {
  auto law = pipeline::ConditionLaw::parse(text);
  if (law.ok()) return law;
  return Error{law.error().kind, fmt::format("--{}: {}", option, law.error().message)};
}

Result<ShowerLaws> laws_of(const CommandLine& line) {
  ASSIGN_OR_RETURN(auto energy, law_of("energy", line.get<std::string>("energy")));
  ASSIGN_OR_RETURN(auto angle, law_of("angle", angle_text(line)));
  ShowerLaws laws{std::move(energy), std::move(angle), {}};
  std::vector<std::string> given;
  line.take("condition", given);
  for (const std::string& each : given) {
    const std::size_t sign = each.find('=');
    if (sign == std::string::npos || sign == 0) {
      return Error{ErrorKind::kUsage,
                   fmt::format("--condition: {} is not NAME=LAW, as in pdg=11", each)};
    }
    ASSIGN_OR_RETURN(auto law, law_of("condition", each.substr(sign + 1)));
    laws.columns.emplace_back(each.substr(0, sign), std::move(law));
  }
  return laws;
}

// One law for each column that the model is asked for, in its order.
Result<void> order_columns(const std::vector<std::string>& asked, ShowerLaws& laws) {
  std::vector<std::pair<std::string, pipeline::ConditionLaw>> ordered;
  for (const std::string& name : asked) {
    const auto given =
        std::ranges::find(laws.columns, name, [](const auto& it) { return it.first; });
    if (given == laws.columns.end()) {
      return Error{ErrorKind::kUsage,
                   fmt::format("this model is asked for {}; say which: --condition {}=LAW",
                               fmt::join(asked, ", "), name)};
    }
    ordered.push_back(std::move(*given));
    laws.columns.erase(given);
  }
  if (!laws.columns.empty()) {
    return Error{ErrorKind::kUsage,
                 fmt::format("--condition {}: {}", laws.columns.front().first,
                             asked.empty() ? "this model has no further ones"
                                           : "this model is not asked for it, or "
                                             "it is given twice")};
  }
  laws.columns = std::move(ordered);
  return {};
}

// Embeddings read numbers of classes.
Result<void> check_classes(const model::GanDescription& gan, const ShowerLaws& laws) {
  for (const model::EmbeddedCondition& embedded : model::embedded_conditions(gan)) {
    for (const auto& [name, law] : laws.columns) {
      if (name != embedded.condition || law.is_of_classes(embedded.classes)) continue;
      return Error{ErrorKind::kUsage,
                   fmt::format("--condition {}: layer {} (embedding) has {} classes; give a whole "
                               "number from 0 to {}, or several (0,1)",
                               name, embedded.layer, embedded.classes, embedded.classes - 1)};
    }
  }
  return {};
}

// Refuses what can be refused before anything is read.
Result<WantedShowers> wanted(const CommandLine& line, const ShowerLaws& laws,
                             const std::string& checkpoint) {
  const pipeline::ConditionLaw &energy = laws.energy, &angle = laws.angle;
  if (!(energy.least() >= kLeastEnergyGev && energy.most() <= kMostEnergyGev)) {
    return Error{ErrorKind::kUsage,
                 fmt::format("--energy must be {} to {} GeV, not {} to {}", kLeastEnergyGev,
                             kMostEnergyGev, energy.least(), energy.most())};
  }
  if (!(angle.least() > 0.0 && angle.most() < 180.0)) {
    return Error{ErrorKind::kUsage, "--angle must lie between 0 and 180 degrees"};
  }
  WantedShowers all{.laws = laws,
                    .first = line.get<std::uint64_t>("first"),
                    .events = line.get<std::uint64_t>("events"),
                    .files = line.get<std::uint32_t>("files")};
  if (all.files > all.events) {
    return Error{ErrorKind::kUsage, fmt::format("{} files for {} showers; expected 1 to {}",
                                                all.files, all.events, all.events)};
  }
  const auto out = line.get<std::string>("out");
  for (std::uint32_t i = 0; i < all.files; ++i) {
    const std::string file = pipeline::shower_file_name(out, i, all.files);
    RETURN_IF_ERROR(check_output_file(file, line.get<bool>("force"), {checkpoint}));
  }
  return all;
}

std::string precision_text(const CommandLine& line, const Trained& trained) {
  if (line.get<bool>("int8")) return "int8";
  return trained.topology.model.precision == model::Precision::kBf16 ? "bf16" : "fp32";
}

Result<pipeline::ShowerFileOptions> file_options(const CommandLine& line, const Trained& trained,
                                                 model::Shape shape, const ShowerLaws& laws) {
  pipeline::ShowerFileOptions options;
  options.schema = written_schema(trained.topology);
  options.shape = {static_cast<std::uint32_t>(shape.space[0]),
                   static_cast<std::uint32_t>(shape.space[1]),
                   static_cast<std::uint32_t>(shape.space[2])};
  options.events = line.get<std::uint64_t>("events");
  options.gzip_level = line.get<int>("gzip");
  options.attributes = {{"generator", fmt::format("troupe model {} state {}", trained.topology.name,
                                                  trained.checkpoint.state_hash.text())},
                        {"seed", line.get<std::uint64_t>("seed")},
                        {"first_event", line.get<std::uint64_t>("first")},
                        {"energy_gev", line.get<std::string>("energy")}};
  options.attributes.emplace_back("precision", precision_text(line, trained));
  if (!trained.mean.empty()) options.attributes.emplace_back("weights", trained.mean);
  if (launch::knows_angles(trained.topology)) {
    options.attributes.emplace_back("angle_degrees", angle_text(line));
  }
  std::vector<std::string> conditions;
  line.take("condition", conditions);
  if (!conditions.empty()) {
    options.attributes.emplace_back("conditions", fmt::format("{}", fmt::join(conditions, " ")));
  }
  // Under the names that a model which learns from this file asks for.
  const auto own = pipeline::written_parts(options.schema);
  const std::string species = pipeline::species_column(options.schema);
  for (const auto& [name, law] : laws.columns) {
    const bool is_species = name == species || species == name + ".0";
    options.columns.push_back({is_species ? species : name});
    options.particles = options.particles || is_species;
    if (is_species || !pipeline::names_column(name, own)) continue;
    return Error{ErrorKind::kUsage,
                 fmt::format("{} files have a part {} of their own; showers that are asked for by "
                             "that name cannot be written",
                             pipeline::text(options.schema), name)};
  }
  for (const std::string& name : trained.topology.model.gan.discriminator.columns) {
    const std::string part = name.substr(0, name.rfind('.'));
    const bool is_taken = pipeline::names_column(part, own) || name == species;
    options.columns.push_back({is_taken ? "made_" + name : name});
  }
  return options;
}

struct Generated {
  std::vector<std::string> files;
  double seconds = 0;
  std::vector<std::string> devices;
  std::vector<std::uint64_t> events;  // of each
};

// The devices asked for; none: the processor.
Result<std::vector<std::string>> devices_of(const CommandLine& line) {
  std::vector<std::string> devices;
  line.take("device", devices);
  if (devices.empty()) devices.emplace_back(config::kProcessor);
  for (auto device = devices.begin(); device != devices.end(); ++device) {
    if (std::find(devices.begin(), device, *device) == device) continue;
    return Error{ErrorKind::kUsage, fmt::format("--device {} is given twice", *device)};
  }
  return devices;
}

Computing computing_of(const CommandLine& line, const std::string& device) {
  Computing computing;
  computing.device = device;
  computing.raw = line.get<bool>("raw");
  if (line.has("precision")) {
    computing.precision = line.get<std::string>("precision") == "bf16" ? model::Precision::kBf16
                                                                       : model::Precision::kFp32;
  }
  return computing;
}

Result<Generated> generate(const CommandLine& line, const ShowerLaws& laws,
                           const std::string& checkpoint, const EndingSignal& ending) {
  ASSIGN_OR_RETURN(WantedShowers wants, wanted(line, laws, checkpoint));
  ASSIGN_OR_RETURN(const std::vector<std::string> devices, devices_of(line));
  const Computing computing = computing_of(line, devices.front());
  ASSIGN_OR_RETURN(Trained trained, launch::open_maker(checkpoint, computing));
  std::vector<std::unique_ptr<model::Backend>> others;
  for (std::size_t i = 1; i < devices.size(); ++i) {
    config::Topology topology = trained.topology;
    topology.replica.device = devices[i];
    ASSIGN_OR_RETURN(others.emplace_back(), launch::make_backend(topology));
  }
  if (line.has("steps")) {
    if (trained.topology.model.gan.task != model::Task::kDiffusion) {
      return Error{ErrorKind::kUsage, "--steps: this model makes a shower at once"};
    }
    line.take("steps", trained.topology.model.gan.diffusion.steps);
  }
  if (line.has("angle") && !launch::knows_angles(trained.topology)) {
    return Error{ErrorKind::kUsage, "--angle: this model was trained without angles"};
  }
  RETURN_IF_ERROR(order_columns(model::columns_of(trained.topology.model.gan.latent), wants.laws));
  RETURN_IF_ERROR(check_classes(trained.topology.model.gan, wants.laws));
  trained.backend->prepare_thread();
  const auto threads = line.get<int>("threads");
  runtime::ThreadTeam team(threads, [&] { trained.backend->prepare_thread(); });
  report_threads(threads, team.threads());
  const model::GanDescription& gan = trained.topology.model.gan;
  pipeline::Int8Generation int8;
  if (line.get<bool>("int8")) {
    const pipeline::NetworkState& generator = trained.checkpoint.state.generator;
    ASSIGN_OR_RETURN(int8, pipeline::prepare_int8(gan, generator.weights, generator.moving, team));
    std::cerr << fmt::format("troupe: {} of {} convolutions in int8\n", int8.in_int8,
                             int8.convolutions);
  }
  std::vector<const model::Backend*> backends{int8.backend ? int8.backend.get()
                                                           : trained.backend.get()};
  for (const auto& other : others) backends.push_back(other.get());
  ASSIGN_OR_RETURN(const auto makers, DeviceMakers::create(gan, backends, team));
  if (makers->shape().channels != 1) {
    return Error{ErrorKind::kUsage, fmt::format("{}: images of {} channels; showers have one",
                                                checkpoint, makers->shape().channels)};
  }
  TrainedShowers source(trained, *makers, team, wants, line.get<std::uint64_t>("seed"));
  const auto start = runtime::steady_now();
  // A generator that has diverged, or a signal, ends the work at the next report of its progress.
  const auto tell = event_progress([&]() -> Result<void> {
    if (source.bad_event()) {
      return Error{ErrorKind::kDiverged,
                   fmt::format("{}: its network makes NaN or infinite numbers (event {}); take an "
                               "older checkpoint of the run",
                               checkpoint, *source.bad_event())};
    }
    return ending.check();
  });
  const pipeline::ShowerSource make = [&](auto first, auto primaries, auto cells, auto columns) {
    source.make(first, primaries, cells, columns);
  };
  ASSIGN_OR_RETURN(const auto options, file_options(line, trained, makers->shape(), wants.laws));
  Generated made;
  ASSIGN_OR_RETURN(made.files,
                   pipeline::write_shower_files(options, wants.files, make,
                                                line.get<std::string>("out"), team, tell));
  made.seconds = std::chrono::duration<double>(runtime::steady_now() - start).count();
  made.devices = devices;
  made.events = makers->events();
  return made;
}

// Where there are several: " (20 by gpu:0, 20 by gpu:1)".
std::string told_devices(const Generated& made) {
  std::vector<std::string> told;
  for (std::size_t i = 0; i < made.devices.size(); ++i) {
    told.push_back(fmt::format("{} by {}", made.events[i], made.devices[i]));
  }
  return told.size() < 2 ? "" : fmt::format(" ({})", fmt::join(told, ", "));
}

// The members of the object that --json asks for.
std::string json(const Generated& made, const std::string& checkpoint, std::uint64_t events) {
  std::vector<std::string> files, devices;
  for (const auto& file : made.files) files.push_back(runtime::json_string(file));
  for (std::size_t i = 0; i < made.devices.size(); ++i) {
    devices.push_back(fmt::format(R"({{"device":{},"events":{}}})",
                                  runtime::json_string(made.devices[i]), made.events[i]));
  }
  return fmt::format(
      R"("file":{},"files":[{}],"checkpoint":{},"events":{},"devices":[{}],"seconds":{},)"
      R"("events_per_second":{})",
      files.front(), fmt::join(files, ","), runtime::json_string(checkpoint), events,
      fmt::join(devices, ","), runtime::json_number(made.seconds),
      runtime::json_number(static_cast<double>(events) / made.seconds));
}

int generate_showers(const CommandLine& line) {
  if (!line.has("out")) return line.usage_error("--out: which file shall be written?");
  for (const char* other : {"precision", "device"}) {
    if (line.get<bool>("int8") && line.has(other)) {
      return line.usage_error(fmt::format("--int8 and --{}: only one of them", other));
    }
  }
  const auto laws = laws_of(line);
  if (!laws.ok()) {
    return laws.error().kind == ErrorKind::kUsage ? line.usage_error(laws.error().message)
                                                  : report(laws.error());
  }
  runtime::FileDisk disk;
  const auto checkpoint = checkpoint_of(line, disk);
  if (!checkpoint.ok()) return report(checkpoint.error());
  const EndingSignal ending;
  const auto made = generate(line, *laws, *checkpoint, ending);
  if (!made.ok()) return ending.code(report(made.error()));
  const auto events = line.get<std::uint64_t>("events");
  if (line.get<bool>("json")) {
    answer(json(*made, *checkpoint, events));
  } else {
    for (const auto& file : made->files) std::cout << file << "\n";
    std::cerr << fmt::format("{} showers in {:.2f} s, {:.0f} events/s{}\n", events, made->seconds,
                             static_cast<double>(events) / made->seconds, told_devices(*made));
  }
  return 0;
}

Option devices_option() {
  Option option = device_option("cpu");
  option.about += "; several share out the showers evenly";
  option.repeats = true;
  return option;
}

std::vector<Option> generate_options() {
  return {
      {.name = "out", .value = "FILE", .about = "the file to write (HDF5)", .takes = Takes::kFile},
      {.name = "energy",
       .value = "LAW",
       .about = "of the primary particle, in GeV: a number, a list (50,100,200, in turn), a range "
                "(10:500, or 10:500:log for equal numbers in equal ratios), or a file with a "
                "histogram (lines of LOW HIGH WEIGHT); 0.001 to 1e6",
       .takes = Takes::kText,
       .preset = "100"},
      {.name = "angle",
       .value = "LAW",
       .about = "of incidence, in degrees, as --energy; models with a variable angle only",
       .takes = Takes::kText},
      {.name = "condition",
       .value = "NAME=LAW",
       .about = "of a further condition of the model (a column of its data), as --energy, in the "
                "units of the data",
       .takes = Takes::kText,
       .repeats = true},
      {.name = "events",
       .value = "N",
       .about = "how many showers",
       .takes = Takes::kWhole,
       .preset = "1000",
       .least = 1,
       .most = kMostEvents},
      {.name = "first",
       .value = "N",
       .about = "number of the first event; an event is the same in whatever call or file it comes",
       .takes = Takes::kWhole,
       .preset = "0",
       .most = kMostEvents},
      {.name = "files",
       .value = "N",
       .about = "spreads them over so many files",
       .takes = Takes::kWhole,
       .preset = "1",
       .least = 1,
       .most = kMostFiles},
      {.name = "gzip",
       .value = "LEVEL",
       .about = "compression; 0 for none",
       .takes = Takes::kWhole,
       .preset = "1",
       .most = 9},
      seed_option("of noise, energies and angles"),
      threads_option("compute threads; the showers do not depend on it"),
      devices_option(),
      {.name = "precision",
       .value = "WORD",
       .about = "of the arithmetic (default: as it was trained)",
       .takes = Takes::kWord,
       .words = {"fp32", "bf16"}},
      {.name = "steps",
       .value = "N",
       .about = "of the sampler of a diffusion task (default: as its topology says)",
       .takes = Takes::kWhole,
       .least = 1,
       .most = 10'000},
      {.name = "int8",
       .about = "computes convolutions in numbers of eight bits, on processors; what it costs: "
                "docs/leaving.md"},
      latest_option(),
      raw_option(),
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
          .example = "troupe generate runs/demo --energy 10:500 --events 1000000 --out showers.h5",
          .forms = {"CHECKPOINT --out FILE [OPTION]..."},
          .places = {{.name = "checkpoint", .asked = "which checkpoint?", .takes = Takes::kFile}},
          .options = generate_options(),
          .synonyms = {"sample"},
          .carry_out = generate_showers};
}

}  // namespace troupe
