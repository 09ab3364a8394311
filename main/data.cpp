#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <utility>

#include <fmt/format.h>

#include "launch/usable_machine.h"
#include "main/command_line.h"
#include "main/commands.h"
#include "main/output_file.h"
#include "pipeline/dataset_info.h"
#include "pipeline/shower_dataset.h"
#include "runtime/base/json_text.h"
#include "runtime/base/thread_team.h"
#include "runtime/base/utf8.h"

namespace troupe {
namespace {

namespace po = boost::program_options;
using runtime::json_number;
using runtime::json_string;
using runtime::printable;

constexpr double kDegree = 3.14159265358979323846 / 180.0;

// Prints on standard error every two seconds. `check`, if set, is asked each time.
pipeline::Progress progress_to_stderr(std::function<runtime::Result<void>()> check = {}) {
  auto last = std::chrono::steady_clock::now();
  return [last, check = std::move(check)](std::uint64_t done,
                                          std::uint64_t total) mutable -> runtime::Result<void> {
    const auto now = std::chrono::steady_clock::now();
    if (now - last > std::chrono::seconds(2)) {
      last = now;
      std::cerr << fmt::format("{} of {} events ({:.0f} %)\n", done, total,
                               100.0 * static_cast<double>(done) / static_cast<double>(total));
    }
    return check ? check() : runtime::Result<void>{};
  };
}

std::string detector_names() {
  std::string names;
  for (const auto kind : pipeline::kDetectorKinds) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", pipeline::detector(kind).name);
  }
  return names;
}

int make(const Arguments& arguments) {
  CommandLine line("data make FILE.h5 [--detector NAME] [--events N] [--seed S] ...",
                   "Makes electron showers and writes them as HDF5 in the schema of the detector.",
                   "troupe data make showers.h5 --detector lcd-fixed-12 --events 1000 --seed 7");
  line.positional("file");
  line.add()("detector", po::value<std::string>()->default_value("lcd-fixed-25"),
             ("one of " + detector_names()).c_str())(
      "events", po::value<std::uint64_t>()->default_value(1000), "how many")(
      "files", po::value<std::uint32_t>()->default_value(1), "spread over so many files")(
      "seed", po::value<std::uint64_t>()->default_value(1), "the same seed gives the same showers")(
      "min-energy", po::value<double>()->default_value(10.0), "GeV")(
      "max-energy", po::value<double>()->default_value(500.0), "GeV")(
      "min-angle", po::value<double>(), "degrees; lcd-angle-51 only")(
      "max-angle", po::value<double>(), "degrees; lcd-angle-51 only")(
      "gzip", po::value<int>()->default_value(1), "compression level, 0 for none")(
      "threads", po::value<int>()->default_value(launch::usable_processors()), "compute threads")(
      "force", po::bool_switch(), "replace files that are there")("json", po::bool_switch(),
                                                                  "print one JSON object");
  if (const auto code = line.parse(arguments)) return *code;
  if (!line.has("file")) return line.usage_error("which file shall be made?");
  const auto kind = pipeline::find_detector(line.get<std::string>("detector"));
  if (!kind) {
    return line.usage_error(fmt::format("no detector '{}'; there are {}",
                                        line.get<std::string>("detector"), detector_names()));
  }
  if (const auto code = line.check_threads()) return *code;
  if (line.get<std::uint64_t>("events") > UINT32_MAX) {
    return line.usage_error("--events must be 1 to 4294967295");
  }
  const std::string file = line.get<std::string>("file");
  const auto files = line.get<std::uint32_t>("files");
  const auto checked = std::min<std::uint64_t>(files, line.get<std::uint64_t>("events"));
  for (std::uint32_t i = 0; i < checked; ++i) {
    const auto possible =
        check_output_file(pipeline::shower_file_name(file, i, files), line.get<bool>("force"));
    if (!possible.ok()) return report(possible.error());
  }
  pipeline::ShowerDatasetOptions options;
  options.showers.detector = *kind;
  options.showers.seed = line.get<std::uint64_t>("seed");
  options.showers.min_energy_gev = line.get<double>("min-energy");
  options.showers.max_energy_gev = line.get<double>("max-energy");
  if (line.has("min-angle"))
    options.showers.min_angle_rad = line.get<double>("min-angle") * kDegree;
  if (line.has("max-angle"))
    options.showers.max_angle_rad = line.get<double>("max-angle") * kDegree;
  options.events = line.get<std::uint64_t>("events");
  options.files = files;
  options.gzip_level = line.get<int>("gzip");
  runtime::ThreadTeam team(line.get<int>("threads"));
  report_threads(line.get<int>("threads"), team.threads());
  const auto start = std::chrono::steady_clock::now();
  const auto paths = pipeline::write_shower_dataset(
      options, file, team, progress_to_stderr([] {
        return launch::check_room_for_file("spread it over several with --files");
      }));
  if (!paths.ok()) return report(paths.error());
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (line.get<bool>("json")) {
    std::string names;
    for (const auto& path : *paths) names += (names.empty() ? "" : ",") + json_string(path);
    std::cout << fmt::format(R"({{"files":[{}],"events":{},"seconds":{}}})", names, options.events,
                             json_number(seconds))
              << "\n";
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
                    : "no known schema";
    std::cout << fmt::format("{}: {}, {:.2f} MB\n", printable(file.path), what,
                             static_cast<double>(file.bytes) / 1e6);
    for (const auto& entry : file.datasets) {
      std::cout << fmt::format(
          "  {:<12} {} {}{}{}\n", printable(entry.name), printable(entry.type),
          fmt::join(entry.shape, " x "),
          entry.chunk.empty() ? ", contiguous"
                              : fmt::format(", chunks {}", fmt::join(entry.chunk, " x ")),
          entry.filters.empty() ? ""
                                : printable(fmt::format(", {}", fmt::join(entry.filters, ", "))));
    }
    for (const auto& [name, value] : file.attributes) {
      std::cout << fmt::format("  @{:<11} {}\n", printable(name), printable(value));
    }
  }
  if (info.schema) {
    std::cout << fmt::format("{} events, {} bad\n", info.events, info.bad_events);
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

std::string json(const pipeline::DatasetInfo& info) {
  std::string files;
  for (const auto& file : info.files) {
    files += fmt::format(R"({}{{"path":{},"bytes":{},"events":{}}})", files.empty() ? "" : ",",
                         json_string(file.path), file.bytes, file.events);
  }
  return fmt::format(
      R"({{"schema":{},"events":{},"bad_events":{},"shape":[{}],"files":[{}],"energy_gev":{},)"
      R"("theta_rad":{},"ecal":{},"occupied_cells":{},"ecal_per_energy":{}}})",
      info.schema ? json_string(pipeline::text(*info.schema)) : "null", info.events,
      info.bad_events, fmt::join(info.shape, ","), files, range_json(info.energy_gev),
      range_json(info.theta_rad), range_json(info.ecal), range_json(info.occupied_cells),
      json_number(info.ecal_per_energy));
}

int info(const Arguments& arguments) {
  CommandLine line("data info FILE.h5 ... [--json]",
                   "Says what files, named or matched by quoted patterns, hold, and checks every "
                   "event of a\nknown schema.",
                   "troupe data info 'data/ele_*.h5'");
  line.positional_rest("files");
  line.add()("threads", po::value<int>()->default_value(launch::usable_processors()),
             "compute threads")("json", po::bool_switch(), "print one JSON object");
  if (const auto code = line.parse(arguments)) return *code;
  if (!line.has("files")) return line.usage_error("which file?");
  if (const auto code = line.check_threads()) return *code;
  runtime::ThreadTeam team(line.get<int>("threads"));
  report_threads(line.get<int>("threads"), team.threads());
  const auto found = pipeline::describe_dataset(line.get<std::vector<std::string>>("files"), team,
                                                progress_to_stderr());
  if (!found.ok()) return report(found.error());
  if (line.get<bool>("json")) {
    std::cout << json(*found) << "\n";
  } else {
    print_for_people(*found);
  }
  if (found->not_understood.empty()) return 0;
  return report(
      {runtime::ErrorKind::kData, fmt::format("{}", fmt::join(found->not_understood, "\n"))});
}

}  // namespace

int data_command(const Arguments& arguments) {
  const std::string verb = arguments.empty() ? "" : arguments[0];
  const Arguments rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (verb == "make") return make(rest);
  if (verb == "info") return info(rest);
  const bool asked = verb == "--help" || verb == "-h";
  (asked ? std::cout : std::cerr)
      << "usage: troupe data make FILE.h5 ...   showers from the built-in generator\n"
         "       troupe data info FILE.h5 ...   what files hold\n\n"
         "Each has a --help of its own.\n\nExample:\n"
         "  troupe data info 'data/ele_*.h5'\n";
  return asked ? 0 : runtime::exit_code(runtime::ErrorKind::kUsage);
}

}  // namespace troupe
