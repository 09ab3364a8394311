#include <algorithm>
#include <chrono>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "main/command_line.h"
#include "main/common_options.h"
#include "main/data_parts.h"
#include "main/ending_signal.h"
#include "main/files.h"
#include "pipeline/data/dataset_info.h"
#include "pipeline/data/shower_dataset.h"
#include "pipeline/data/shower_file.h"
#include "runtime/base/clock.h"
#include "runtime/base/json_text.h"
#include "runtime/base/thread_team.h"
#include "runtime/base/utf8.h"

namespace troupe {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::json_number;
using runtime::json_string;
using runtime::printable;
using runtime::Result;

constexpr double kDegree = 3.14159265358979323846 / 180.0;

std::vector<std::string> detector_names() {
  std::vector<std::string> names;
  for (const auto kind : pipeline::kDetectorKinds) {
    names.emplace_back(pipeline::detector(kind).name);
  }
  return names;
}

// Those in "electron,pion".
Result<std::vector<pipeline::Particle>> particles_in(const std::string& list) {
  std::vector<pipeline::Particle> particles;
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');) {
    const auto found = pipeline::find_particle(name);
    if (!found) {
      return Error{ErrorKind::kUsage,
                   fmt::format("--particles {}: expected some of electron, photon and pion, with "
                               "commas between them",
                               list)};
    }
    particles.push_back(*found);
  }
  return particles;
}

Result<pipeline::ShowerDatasetOptions> dataset_options(const CommandLine& line) {
  pipeline::ShowerDatasetOptions options;
  ASSIGN_OR_RETURN(options.showers.particles, particles_in(line.get<std::string>("particles")));
  options.showers.detector = *pipeline::find_detector(line.get<std::string>("detector"));
  options.showers.seed = line.get<std::uint64_t>("seed");
  options.showers.min_energy_gev = line.get<double>("min-energy");
  options.showers.max_energy_gev = line.get<double>("max-energy");
  if (line.has("min-angle"))
    options.showers.min_angle_rad = line.get<double>("min-angle") * kDegree;
  if (line.has("max-angle"))
    options.showers.max_angle_rad = line.get<double>("max-angle") * kDegree;
  options.events = line.get<std::uint64_t>("events");
  options.files = line.get<std::uint32_t>("files");
  options.gzip_level = line.get<int>("gzip");
  return options;
}

int make(const CommandLine& line) {
  const auto asked = dataset_options(line);
  if (!asked.ok()) return report(asked.error());
  const pipeline::ShowerDatasetOptions& options = *asked;
  const std::string file = line.get<std::string>("file");
  // All files are checked before the first one is made, which may take long. More files than events
  // are refused later, and not looked for here.
  const auto checked = std::min<std::uint64_t>(options.files, options.events);
  for (std::uint32_t i = 0; i < checked; ++i) {
    const auto possible = check_output_file(pipeline::shower_file_name(file, i, options.files),
                                            line.get<bool>("force"));
    if (!possible.ok()) return report(possible.error());
  }
  const EndingSignal ending;
  runtime::ThreadTeam team(line.get<int>("threads"));
  report_threads(line.get<int>("threads"), team.threads());
  const auto start = runtime::steady_now();
  const auto paths = pipeline::write_shower_dataset(options, file, team,
                                                    event_progress([&] { return ending.check(); }));
  if (!paths.ok()) return ending.code(report(paths.error()));
  const double seconds = std::chrono::duration<double>(runtime::steady_now() - start).count();
  if (line.get<bool>("json")) {
    std::vector<std::string> names;
    for (const auto& path : *paths) names.push_back(json_string(path));
    answer(fmt::format(R"("files":[{}],"events":{},"seconds":{})", fmt::join(names, ","),
                       options.events, json_number(seconds)));
  } else {
    for (const auto& path : *paths) std::cout << path << "\n";
    std::cerr << fmt::format("{} events in {:.1f} s\n", options.events, seconds);
  }
  return 0;
}

void print_range(const char* what, const pipeline::Range& range, const char* unit) {
  std::cout << fmt::format("  {:<16} {:.6g} to {:.6g}, mean {:.6g} {}\n", what, range.min,
                           range.max, range.mean, unit);
}

// Names and texts are the files', and those may be anybody's.
void print_for_people(const pipeline::DatasetInfo& info) {
  for (const auto& file : info.files) {
    const std::string what =
        file.schema ? fmt::format("{}, {} events", pipeline::text(*file.schema), file.events)
                    : fmt::format("{} of no known schema", pipeline::text(file.format));
    std::cout << fmt::format("{}: {}, {:.2f} MB\n", printable(file.path), what,
                             static_cast<double>(file.bytes) / 1e6);
    for (const auto& entry : file.datasets) {
      std::cout << fmt::format(
          "  {:<12} {} {}{}{}\n", printable(entry.name), printable(entry.type),
          fmt::join(entry.shape, " x "),
          file.format != pipeline::FileFormat::kHdf5 ? ""
          : entry.chunk.empty()                      ? ", contiguous"
                                : fmt::format(", chunks {}", fmt::join(entry.chunk, " x ")),
          entry.filters.empty() ? ""
                                : printable(fmt::format(", {}", fmt::join(entry.filters, ", "))));
    }
    for (const auto& [name, value] : file.attributes) {
      std::cout << fmt::format("  @{:<11} {}\n", printable(name), printable(value));
    }
  }
  if (info.schema) {
    std::cout << fmt::format("{} events of {}, {} bad\n", info.events, info.shape.text(),
                             info.bad_events);
    print_range("energy", info.energy_gev, "GeV");
    print_range("theta", info.theta_rad, "rad");
    print_range("ecal", info.ecal, "(stored units)");
    print_range("occupied cells", info.occupied_cells, "");
    std::cout << fmt::format("  {:<16} {:.6g} (stored units per GeV)\n", "ecal / energy",
                             info.ecal_per_energy);
  }
  for (const auto& bad : info.bad_event_examples) std::cout << "  bad: " << printable(bad) << "\n";
  for (const auto& note : info.notes) std::cout << "  note: " << printable(note) << "\n";
}

std::string range_json(const pipeline::Range& range) {
  return fmt::format(R"({{"min":{},"max":{},"mean":{}}})", json_number(range.min),
                     json_number(range.max), json_number(range.mean));
}

// Several channels are a fourth number.
std::string shape_json(const pipeline::ImageShape& shape) {
  std::string all = fmt::format("{}", fmt::join(shape.space, ","));
  if (shape.channels != 1) all += fmt::format(",{}", shape.channels);
  return all;
}

// The members of the object.
std::string json(const pipeline::DatasetInfo& info) {
  std::string files;
  for (const auto& file : info.files) {
    files += fmt::format(R"({}{{"path":{},"bytes":{},"events":{}}})", files.empty() ? "" : ",",
                         json_string(file.path), file.bytes, file.events);
  }
  return fmt::format(
      R"("schema":{},"events":{},"bad_events":{},"shape":[{}],"files":[{}],"energy_gev":{},)"
      R"("theta_rad":{},"ecal":{},"occupied_cells":{},"ecal_per_energy":{})",
      info.schema ? json_string(pipeline::text(*info.schema)) : "null", info.events,
      info.bad_events, shape_json(info.shape), files, range_json(info.energy_gev),
      range_json(info.theta_rad), range_json(info.ecal), range_json(info.occupied_cells),
      json_number(info.ecal_per_energy));
}

int info(const CommandLine& line) {
  runtime::ThreadTeam team(line.get<int>("threads"));
  report_threads(line.get<int>("threads"), team.threads());
  const auto options = describe_options(line);
  if (!options.ok()) return report(options.error());
  const auto found = pipeline::describe_dataset(line.get<std::vector<std::string>>("file"),
                                                *options, team, event_progress());
  if (!found.ok()) return report(found.error());
  const std::string problems = fmt::format("{}", fmt::join(found->not_understood, "\n"));
  const int code = problems.empty() ? 0 : report({runtime::ErrorKind::kData, problems});
  if (line.get<bool>("json")) {
    answer(json(*found), problems, code);
  } else {
    print_for_people(*found);
  }
  return code;
}

Option degrees_option(const std::string& name) {
  return {.name = name,
          .value = "DEGREES",
          .about = "of incidence; lcd-angle-51 only",
          .takes = Takes::kNumber};
}

std::vector<Option> make_options() {
  return {{.name = "detector",
           .value = "NAME",
           .about = "which calorimeter",
           .takes = Takes::kWord,
           .preset = "lcd-fixed-25",
           .words = detector_names()},
          events_option(0),
          {.name = "files",
           .value = "N",
           .about = "spreads them over so many files",
           .takes = Takes::kWhole,
           .preset = "1",
           .most = UINT32_MAX},
          seed_option("the same seed gives the same showers"),
          {.name = "particles",
           .value = "LIST",
           .about = "electron, photon or pion, or some of them with commas between, of which each "
                    "shower has one",
           .takes = Takes::kText,
           .preset = "electron"},
          {.name = "min-energy",
           .value = "GEV",
           .about = "the least energy of a primary particle",
           .takes = Takes::kNumber,
           .preset = "10"},
          {.name = "max-energy",
           .value = "GEV",
           .about = "the largest",
           .takes = Takes::kNumber,
           .preset = "500"},
          degrees_option("min-angle"),
          degrees_option("max-angle"),
          {.name = "gzip",
           .value = "LEVEL",
           .about = "compression; 0 for none",
           .takes = Takes::kWhole,
           .preset = "1",
           .most = 9},
          threads_option("compute threads"),
          force_option(),
          json_option()};
}

std::vector<Option> info_options() {
  std::vector<Option> options = part_options();
  options.push_back(threads_option("compute threads"));
  options.push_back(json_option());
  return options;
}

}  // namespace

Command data_make_verb() {
  return {.name = "data make",
          .summary = "showers from the built-in generator",
          .about = "Makes showers and writes them as HDF5 in the schema of the detector.",
          .example = "troupe data make showers.h5 --detector lcd-fixed-12 --events 1000 --seed 7",
          .places = {{.name = "file", .asked = "which file shall be made?", .takes = Takes::kFile}},
          .options = make_options(),
          .carry_out = make};
}

Command data_info_verb() {
  return {
      .name = "data info",
      .summary = "what files hold",
      .about =
          "Says what files, named or matched by quoted patterns, hold, and checks every event "
          "of a known schema.",
      .example = "troupe data info 'data/ele_*.h5'",
      .places = {{.name = "file", .asked = "which file?", .takes = Takes::kFile, .repeats = true}},
      .options = info_options(),
      .carry_out = info};
}

}  // namespace troupe
