#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "main/command_line.h"
#include "main/common_options.h"
#include "main/files.h"
#include "main/trained.h"
#include "model/physics/figures.h"
#include "model/physics/figures_text.h"
#include "model/physics/sample_comparer.h"
#include "model/physics/validation_report.h"
#include "model/physics/verdict.h"
#include "pipeline/checkpoint/checkpoint_folder.h"
#include "pipeline/checkpoint/checkpoint_seal.h"
#include "pipeline/data/dataset_info.h"
#include "pipeline/data/measured_showers.h"
#include "pipeline/data/shower_dataset.h"
#include "runtime/base/clock.h"
#include "runtime/base/json_writer.h"

namespace troupe {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

struct Sides {
  pipeline::MeasuredData data;
  std::vector<model::RankedSample> generated;  // one, or those that are ranked, best first
  // The showers of the best so far, by the figure that ranks.
  std::optional<model::ShowerSample> best;
};

bool is_checkpoint(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string magic(pipeline::kCheckpointMagic.size(), '\0');
  file.read(magic.data(), static_cast<std::streamsize>(magic.size()));
  return file && magic == pipeline::kCheckpointMagic;
}

// The checkpoints of a run's folder, or of one of checkpoints, newest first.
Result<std::vector<std::string>> checkpoints_in(const std::string& path) {
  std::error_code ignored;
  const bool of_run = std::filesystem::is_directory(path + "/checkpoints", ignored);
  const std::string folder = of_run ? path + "/checkpoints" : path;
  runtime::FileDisk disk;
  ASSIGN_OR_RETURN(const auto names, disk.list(folder));
  std::vector<std::string> found;
  for (const std::string& name : pipeline::checkpoints_newest_first(names)) {
    found.push_back(folder + "/" + name);
  }
  if (found.empty()) return Error{ErrorKind::kData, folder + " has no checkpoint yet"};
  return found;
}

// Of the figure `by` from what equal samples have.
double distance(const std::string& by, const model::RankedSample& sample) {
  const model::Figure* figure = model::find_figure(sample.figures, by);
  return figure != nullptr && figure->value ? figure->distance()
                                            : std::numeric_limits<double>::infinity();
}

// Where the run that a path belongs to, its folder, that of its checkpoints or one of them, keeps
// synthetic showers unless its topology says otherwise.
std::string data_folder_of(const std::string& path) {
  std::error_code ignored;
  std::filesystem::path run = std::filesystem::absolute(path).lexically_normal();
  if (!run.has_filename()) run = run.parent_path();
  if (!std::filesystem::is_directory(run, ignored)) run = run.parent_path();
  if (!std::filesystem::is_directory(run / "checkpoints", ignored)) run = run.parent_path();
  return run.parent_path() / "data";
}

// One call of the verb: what it was asked for and the threads that compute.
class Validation {
 public:
  explicit Validation(const CommandLine& line)
      : line_(line), team_(line.get<int>("threads")), tell_(event_progress()) {
    report_threads(line.get<int>("threads"), team_.threads());
  }

  Result<Sides> run() {
    const auto generated = line_.get<std::string>("generated");
    std::error_code ignored;
    const bool folder = std::filesystem::is_directory(generated, ignored);
    if (folder && (line_.get<bool>("rank") || !line_.has("against"))) {
      ASSIGN_OR_RETURN(const auto checkpoints, checkpoints_in(generated));
      return judge_checkpoints(checkpoints);
    }
    runtime::FileDisk disk;
    ASSIGN_OR_RETURN(const std::string path, checkpoint_at(generated, disk));
    if (is_checkpoint(path)) return judge_checkpoints({path});
    return judge_file(path);
  }

 private:
  model::StatisticsOptions statistics(const std::array<std::uint32_t, 3>& shape, bool angle) const {
    model::StatisticsOptions options;
    options.space = {shape[0], shape[1], shape[2]};
    options.hit_threshold_gev = line_.get<double>("hit-threshold");
    options.angle = angle;
    return options;
  }

  Result<pipeline::Dataset> open(pipeline::DatasetOptions options) const {
    options.threads = team_.threads();
    options.cache = pipeline::CacheMode::kNone;
    options.index_folder.clear();
    return pipeline::Dataset::open(options);
  }

  std::uint64_t most_events() const { return line_.get<std::uint64_t>("events"); }

  void fit_bins(model::ShowerSample& data) const {
    data.fit_bins(line_.get<int>("energy-bins"), line_.get<int>("angle-bins"));
  }

  Result<Sides> judge_file(const std::string& path) {
    if (!line_.has("against")) {
      return Error{ErrorKind::kUsage, "--against: which showers are right? a file of them"};
    }
    ASSIGN_OR_RETURN(pipeline::MeasuredData data, measure(line_.get<std::string>("against"), {}));
    ASSIGN_OR_RETURN(const pipeline::MeasuredData generated, measure(path, data.sample.options()));
    fit_bins(data.sample);
    model::ShowerSample sample = generated.sample;
    sample.set_bins(data.sample.options().energy_bins, data.sample.options().angle_bins);
    Sides sides{std::move(data), {}, {}};
    judge(path, sample, sides);
    return sides;
  }

  // As it is stored; `like`: of the showers to compare with.
  Result<pipeline::MeasuredData> measure(const std::string& path,
                                         const std::optional<model::StatisticsOptions>& like) {
    pipeline::DatasetOptions options;
    options.paths = {path};
    ASSIGN_OR_RETURN(options.schema, pipeline::find_schema(options.paths));
    options.preprocessing.emplace();
    options.on_bad_event = pipeline::BadEventPolicy::kSkip;
    ASSIGN_OR_RETURN(pipeline::Dataset dataset, open(options));
    for (const std::string& bad : dataset.report().bad_events) {
      std::cerr << "troupe: left out: " << bad << "\n";
    }
    pipeline::MeasuringOptions measuring;
    measuring.statistics = like.value_or(
        statistics(dataset.shape().space, options.schema == pipeline::DataSchema::kLcdAngle));
    measuring.units = pipeline::image_units(options);
    measuring.sketches = true;
    return pipeline::measure_dataset(dataset, measuring, most_events(), {}, tell_);
  }

  // The data that checkpoints of the topology are judged by, as it has them preprocessed.
  Result<pipeline::Dataset> open_data(const config::Topology& topology) const {
    pipeline::DatasetOptions options = topology.data.dataset;
    if (line_.has("against")) {
      options.paths = {line_.get<std::string>("against")};
      options.split = pipeline::DataSplit::kAll;
      return open(options);
    }
    options.split = pipeline::DataSplit::kTest;
    if (topology.data.synthetic) {
      pipeline::SyntheticOptions synthetic = topology.data.showers;
      if (synthetic.folder.empty()) {
        synthetic.folder = data_folder_of(line_.get<std::string>("generated"));
      }
      options.paths = {pipeline::synthetic_path(synthetic)};
    }
    auto dataset = open(options);
    if (dataset.ok()) return dataset;
    return Error{dataset.error().kind,
                 fmt::format("{}\nthe run's own test data are not here; name others: --against",
                             dataset.error().message)};
  }

  // The data are those that the first of them is judged by. One that cannot be opened is left out
  // where there are others.
  Result<Sides> judge_checkpoints(const std::vector<std::string>& paths) {
    std::optional<Sides> sides;
    for (const std::string& path : paths) {
      Computing computing;
      line_.take("device", computing.device);
      const Result<Trained> opened = open_trained(path, computing);
      if (!opened.ok()) {
        if (paths.size() == 1 || (!sides && path == paths.back())) return opened.error();
        std::cerr << fmt::format("troupe: left out: {}\n", opened.error().message);
        continue;
      }
      const Trained& trained = *opened;
      trained.backend->prepare_thread();
      runtime::ThreadTeam team(team_.threads(), [&] { trained.backend->prepare_thread(); });
      ASSIGN_OR_RETURN(const auto maker, pipeline::ShowerMaker::create(trained.topology.model.gan,
                                                                       *trained.backend, team));
      if (!sides) {
        ASSIGN_OR_RETURN(sides, open_sides(trained.topology, maker->shape()));
      }
      const pipeline::NetworkState& generator = trained.checkpoint.state.generator;
      const std::size_t all = sides->data.energies.size();
      const auto sample =
          pipeline::measure_generated(*maker, generator.weights, generator.moving, sides->data,
                                      measuring(trained.topology, sides->data.sample.options()),
                                      line_.get<std::uint64_t>("seed"), {},
                                      [&](std::size_t made) { return tell_(made, all).ok(); });
      CHECK(sample.has_value(), "nobody ends it");
      judge(path, *sample, *sides);
    }
    return std::move(*sides);
  }

  static pipeline::MeasuringOptions measuring(const config::Topology& topology,
                                              const model::StatisticsOptions& statistics) {
    return {statistics, pipeline::image_units(topology.data.dataset), true};
  }

  Result<Sides> open_sides(const config::Topology& topology, const model::Shape& shape) {
    std::array<std::uint32_t, 3> space{};
    for (std::size_t i = 0; i < 3; ++i) space[i] = static_cast<std::uint32_t>(shape.space[i]);
    const bool angle = model::uses_angle(topology.model.gan.latent);
    ASSIGN_OR_RETURN(pipeline::Dataset dataset, open_data(topology));
    ASSIGN_OR_RETURN(
        auto data, pipeline::measure_dataset(dataset, measuring(topology, statistics(space, angle)),
                                             most_events(), {}, tell_));
    fit_bins(data.sample);
    return Sides{std::move(data), {}, {}};
  }

  void judge(const std::string& name, const model::ShowerSample& generated, Sides& sides) {
    model::FigureOptions options;
    options.replicas = line_.get<int>("replicas");
    options.seed = line_.get<std::uint64_t>("seed");
    auto last = runtime::steady_now();
    options.going_on = [last](double share) mutable {
      const auto now = runtime::steady_now();
      if (now - last > std::chrono::seconds(2)) {
        last = now;
        std::cerr << fmt::format("figures: {:.0f} %\n", 100.0 * share);
      }
      return true;
    };
    model::RankedSample judged;
    judged.name = name;
    judged.events = generated.showers().size();
    judged.figures = model::compute_figures(sides.data.sample, generated, options, team_);
    judged.faults = model::find_faults(sides.data.sample, generated, judged.figures);
    const auto by = line_.get<std::string>("by");
    const auto ahead = [&](const model::RankedSample& other) {
      return distance(by, judged) < distance(by, other);
    };
    if (std::ranges::all_of(sides.generated, ahead)) sides.best = generated;
    sides.generated.push_back(std::move(judged));
  }

  const CommandLine& line_;
  runtime::ThreadTeam team_;
  pipeline::Progress tell_;
};

void rank(const std::string& by, Sides& sides) {
  std::ranges::stable_sort(sides.generated, {},
                           [&](const model::RankedSample& sample) { return distance(by, sample); });
}

// The members of the object.
std::string json(const Sides& sides, const std::string& against) {
  std::string members;
  runtime::JsonWriter out(members);
  out.text("against", against, 0);
  out.number("events", sides.data.sample.showers().size());
  out.list("generated", sides.generated, 0,
           [](runtime::JsonWriter& items, const model::RankedSample& sample) {
             items.group("", [&](runtime::JsonWriter& object) {
               object.text("name", sample.name, 0);
               object.number("events", sample.events);
               object.text("verdict", model::verdict_line(sample.faults), 0);
               object.list("faults", sample.faults, 0);
               object.list("figures", sample.figures, 0);
             });
           });
  return members;
}

void print_for_people(const Sides& sides) {
  if (sides.generated.size() > 1) {
    std::cout << model::ranking_text(sides.generated) << "\n"
              << "The best, " << sides.generated.front().name << ":\n";
  }
  const model::RankedSample& best = sides.generated.front();
  std::cout << model::verdict_text(best.faults) << "\n" << model::figures_text(best.figures);
}

int validate(const CommandLine& line) {
  const auto by = line.get<std::string>("by");
  if (model::find_figure(model::figure_list(true), by) == nullptr) {
    return line.usage_error(fmt::format("--by: no figure {}; --json lists them", by));
  }
  const bool reports = line.has("report");
  if (reports) {
    const auto checked =
        check_output_file(line.get<std::string>("report"), line.get<bool>("force"));
    if (!checked.ok()) return report(checked.error());
  }
  Validation validation(line);
  auto sides = validation.run();
  if (!sides.ok()) return report(sides.error());
  rank(by, *sides);
  std::string against = "the test data of the run";
  line.take("against", against);
  if (reports) {
    const std::string html =
        model::validation_html({against, sides->data.sample, *sides->best, sides->generated});
    runtime::FileDisk disk;
    const auto written =
        disk.replace(line.get<std::string>("report"), std::as_bytes(std::span(html)));
    if (!written.ok()) return report(written.error());
  }
  if (line.get<bool>("json")) {
    answer(json(*sides, against));
  } else {
    print_for_people(*sides);
  }
  return 0;
}

std::vector<Option> validate_options() {
  return {
      {.name = "against",
       .value = "FILE",
       .about = "showers that are right (HDF5), or a quoted pattern of such files (default: the "
                "test data of the run, whose checkpoints are then ranked)",
       .takes = Takes::kFile},
      {.name = "rank",
       .about = "of a run's folder, compares all checkpoints that are kept, not only the best"},
      {.name = "by",
       .value = "FIGURE",
       .about = "ranks by this figure's distance from what equal samples have",
       .takes = Takes::kText,
       .preset = "merit"},
      {.name = "report",
       .value = "FILE",
       .about = "writes a page with all figures and plots (HTML)",
       .takes = Takes::kFile},
      {.name = "events",
       .value = "N",
       .about = "takes the first N showers",
       .takes = Takes::kWhole,
       .preset = "1000000000",
       .preset_shown = "all",
       .least = 2},
      {.name = "hit-threshold",
       .value = "GEV",
       .about = "cells above it are hits",
       .takes = Takes::kNumber,
       .preset = "3e-4"},
      {.name = "energy-bins",
       .value = "N",
       .about = "equal bins over the energies of the data",
       .takes = Takes::kWhole,
       .preset = "5",
       .least = 1,
       .most = 100},
      {.name = "angle-bins",
       .value = "N",
       .about = "the same over their angles",
       .takes = Takes::kWhole,
       .preset = "3",
       .least = 1,
       .most = 100},
      {.name = "replicas",
       .value = "N",
       .about = "samples drawn for uncertainties, and as many for floors",
       .takes = Takes::kWhole,
       .preset = "200",
       .least = 2,
       .most = 100000},
      seed_option("of the noise and of the samples drawn"),
      threads_option("compute threads; the figures do not depend on it"),
      device_option("cpu"),
      force_option(),
      json_option()};
}

}  // namespace

Command validate_verb() {
  return {.name = "validate",
          .summary = "generated showers against data",
          .about =
              "Compares showers with data and says what is wrong: response, profiles, moments, "
              "hits, cells, correlations, copies, each figure with its uncertainty and with what "
              "the data have against themselves. GENERATED is a file of showers, or a checkpoint, "
              "which makes a shower for each of the data; a run's folder stands for its best, and "
              "without --against for all of them, ranked.",
          .example = "troupe validate showers.h5 --against data.h5 --report report.html",
          .places = {{.name = "generated",
                      .asked = "which showers, or which checkpoint?",
                      .takes = Takes::kFile}},
          .options = validate_options(),
          .carry_out = validate};
}

}  // namespace troupe
