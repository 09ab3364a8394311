#include "main/validation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "config/validator_statistics.h"
#include "main/common_options.h"
#include "main/files.h"
#include "model/latent.h"
#include "model/physics/class_figures.h"
#include "model/physics/figure.h"
#include "model/physics/figures.h"
#include "model/physics/sample_comparer.h"
#include "model/physics/verdict.h"
#include "pipeline/checkpoint/checkpoint_folder.h"
#include "pipeline/checkpoint/checkpoint_seal.h"
#include "pipeline/data/dataset_info.h"
#include "pipeline/data/discriminator_outputs.h"
#include "pipeline/data/shower_dataset.h"
#include "runtime/base/clock.h"

namespace troupe {
namespace {

using launch::Trained;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr int kEnergyBins = 5, kAngleBins = 3;  // where nobody says how many
constexpr std::size_t kAskedAtOnce = 256;       // showers

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

bool is_checkpoint(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string magic(pipeline::kCheckpointMagic.size(), '\0');
  file.read(magic.data(), static_cast<std::streamsize>(magic.size()));
  return file && magic == pipeline::kCheckpointMagic;
}

// The checkpoints of a run's folder, or of one of checkpoints, newest first.
Result<std::vector<std::string>> checkpoints_in(const std::string& path) {
  const std::string folder = is_folder(path + "/checkpoints") ? path + "/checkpoints" : path;
  runtime::FileDisk disk;
  ASSIGN_OR_RETURN(const auto names, disk.list(folder));
  std::vector<std::string> found;
  for (const std::string& name : pipeline::checkpoints_newest_first(names)) {
    found.push_back(folder + "/" + name);
  }
  if (found.empty()) return no_checkpoint_in(folder);
  return found;
}

// How far the figure `by` is from what equal samples have.
double distance(const std::string& by, const model::RankedSample& sample) {
  const model::Figure* figure = model::find_figure(sample.figures, by);
  return figure != nullptr && figure->value ? figure->distance()
                                            : std::numeric_limits<double>::infinity();
}

// Where the run that a path belongs to, its folder, that of its checkpoints or one of them, keeps
// synthetic showers unless its topology says otherwise.
std::string data_folder_of(const std::string& path) {
  std::filesystem::path run = std::filesystem::absolute(path).lexically_normal();
  if (!run.has_filename()) run = run.parent_path();
  if (!is_folder(run)) run = run.parent_path();
  if (!is_folder(run / "checkpoints")) run = run.parent_path();
  return run.parent_path() / "data";
}

pipeline::MeasuringOptions measuring(const config::Topology& topology,
                                     const model::StatisticsOptions& statistics) {
  return {.statistics = statistics,
          .units = pipeline::image_units(topology.data.dataset),
          .sketches = true,
          .columns = model::columns_of(topology.model.gan.latent).size()};
}

// Bad events of a data set, where all of its others are compared: nothing says how many of them
// would be in a part of it.
std::uint64_t bad_of_all(const pipeline::Dataset& dataset, const model::ShowerSample& compared) {
  const pipeline::DatasetReport& report = dataset.report();
  return compared.showers().size() + report.bad == report.rows ? report.bad : 0;
}

Result<void> check_ranked_by(const Validated& sides) {
  const auto has_figure = [&](const model::RankedSample& sample) {
    return std::isfinite(distance(sides.by, sample));
  };
  if (std::ranges::any_of(sides.generated, has_figure)) return {};
  return Error{ErrorKind::kUsage,
               fmt::format("--by: no showers that were compared have a {}", sides.by)};
}

Result<void> check_usable(const model::ShowerSample& data) {
  const auto usable = [](const model::SampledShower& shower) {
    return shower.usable() && !shower.found.empty();
  };
  if (std::ranges::any_of(data.showers(), usable)) return {};
  return Error{ErrorKind::kData,
               fmt::format("none of the {} showers to compare with can be used: {}",
                           data.showers().size(), model::find_remarks(data).front().text)};
}

}  // namespace

Validation::Validation(const CommandLine& line)
    : line_(line), team_(line.get<int>("threads")), tell_(event_progress()) {
  report_threads(line.get<int>("threads"), team_.threads());
  auto backend = model::make_portable_backend();
  if (backend.ok()) {
    backend_ = std::move(backend).value();
  } else {
    std::cerr << fmt::format("troupe: no classifier is trained: {}\n", backend.error().message);
  }
}

bool Validation::ranks() const {
  return is_folder(line_.get<std::string>("generated")) && !line_.get<bool>("latest") &&
         (line_.get<bool>("rank") || !line_.has("against"));
}

Result<void> Validation::check_ranking() const {
  if (ranks()) return {};
  const auto refused = [&](const char* option) -> Result<void> {
    return Error{ErrorKind::kUsage,
                 fmt::format("--{}: only the checkpoints of a folder are ranked; {} {}", option,
                             line_.get<std::string>("generated"),
                             line_.get<bool>("latest") ? "stands for its newest with --latest"
                             : is_folder(line_.get<std::string>("generated"))
                                 ? "stands for its best where there is --against; add --rank"
                                 : "is no folder")};
  };
  if (line_.get<bool>("rank")) return refused("rank");
  return line_.has("by") ? refused("by") : Result<void>{};
}

Result<Validated> Validation::run() {
  RETURN_IF_ERROR(check_ranking());
  const auto generated = line_.get<std::string>("generated");
  if (ranks()) {
    ASSIGN_OR_RETURN(const auto checkpoints, checkpoints_in(generated));
    return judge_checkpoints(checkpoints);
  }
  runtime::FileDisk disk;
  ASSIGN_OR_RETURN(const std::string path, checkpoint_at(generated, disk, which_checkpoint(line_)));
  if (is_checkpoint(path)) return judge_checkpoints({path});
  if (line_.has("judge")) {
    return Error{ErrorKind::kUsage,
                 fmt::format("--judge: a classifier judges what a checkpoint makes; {} is a file "
                             "of showers",
                             path)};
  }
  return judge_file(path);
}

std::string Validation::by(const config::ValidatorSection& section) const {
  return model::figure_meant(line_.has("by") ? line_.get<std::string>("by") : section.best);
}

model::StatisticsOptions Validation::statistics(const config::ValidatorSection& section,
                                                const model::Extent& space, bool angle) const {
  model::StatisticsOptions options = config::statistics_of(section, space, angle);
  line_.take("hit-threshold", options.hit_threshold_gev);
  return options;
}

// The bins that a topology gives are its own; those it does not give are fitted to the data.
void Validation::set_bins(const config::ValidatorSection& section,
                          model::ShowerSample& data) const {
  int energies = kEnergyBins, angles = kAngleBins;
  line_.take("energy-bins", energies);
  line_.take("angle-bins", angles);
  data.fit_bins(energies, angles);
  const model::StatisticsOptions given = config::statistics_of(section, data.options().space, true);
  auto of_energies = data.options().energy_bins;
  auto of_angles = data.options().angle_bins;
  if (!line_.has("energy-bins") && section.energy_bins != config::ValidatorSection{}.energy_bins) {
    of_energies = given.energy_bins;
  }
  if (!line_.has("angle-bins") && !section.angle_bins.empty()) of_angles = given.angle_bins;
  data.set_bins(std::move(of_energies), std::move(of_angles));
}

Result<pipeline::Dataset> Validation::open(pipeline::DatasetOptions options) const {
  options.threads = team_.threads();
  options.cache = pipeline::CacheMode::kNone;
  options.index_folder.clear();
  return pipeline::Dataset::open(options);
}

Result<Validation::OfFile> Validation::measure(
    const std::string& path, const std::optional<model::StatisticsOptions>& like) {
  pipeline::DatasetOptions options;
  options.paths = {path};
  ASSIGN_OR_RETURN(options.schema, pipeline::find_schema(options.paths));
  options.preprocessing.emplace();
  options.on_bad_event = pipeline::BadEventPolicy::kSkip;
  ASSIGN_OR_RETURN(pipeline::Dataset dataset, open(options));
  for (const std::string& bad : dataset.report().bad_events) {
    std::cerr << "troupe: left out: " << bad << "\n";
  }
  const auto space = dataset.shape().space;
  pipeline::MeasuringOptions measuring;
  measuring.statistics = like.value_or(statistics(
      {}, {space[0], space[1], space[2]}, options.schema == pipeline::DataSchema::kLcdAngle));
  measuring.units = pipeline::image_units(options);
  measuring.sketches = true;
  ASSIGN_OR_RETURN(
      auto measured,
      pipeline::measure_dataset(dataset, measuring, line_.get<std::uint64_t>("events"), {}, tell_));
  const std::uint64_t bad = bad_of_all(dataset, measured.sample);
  return OfFile{std::move(measured), bad};
}

Result<Validated> Validation::judge_file(const std::string& path) {
  if (!line_.has("against")) {
    return Error{ErrorKind::kUsage, "--against: which showers are right? a file of them"};
  }
  ASSIGN_OR_RETURN(OfFile data, measure(line_.get<std::string>("against"), {}));
  model::ShowerSample& known = data.measured.sample;
  RETURN_IF_ERROR(check_usable(known));
  ASSIGN_OR_RETURN(OfFile generated, measure(path, known.options()));
  set_bins({}, known);
  model::ShowerSample& sample = generated.measured.sample;
  sample.set_bins(known.options().energy_bins, known.options().angle_bins);
  Validated sides{std::move(data.measured)};
  sides.remarks = model::find_remarks(sides.data->sample, data.left_out);
  sides.by = by({});
  judge(path, sample, generated.left_out, sides);
  return sides;
}

// The data that checkpoints of the topology are judged by, as it has them preprocessed.
Result<pipeline::Dataset> Validation::open_data(const config::Topology& topology) const {
  pipeline::DatasetOptions options = topology.data.dataset;
  if (line_.has("against")) {
    options.paths = {line_.get<std::string>("against")};
    options.split = pipeline::DataSplit::kAll;
    // The generator is asked for these; the file need not have those that it makes.
    options.columns.resize(model::columns_of(topology.model.gan.latent).size());
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
Result<Validated> Validation::judge_checkpoints(const std::vector<std::string>& paths) {
  std::optional<Validated> sides;
  launch::Computing computing;
  line_.take("device", computing.device);
  computing.raw = line_.get<bool>("raw");
  for (const std::string& path : paths) {
    const Result<Trained> opened = launch::open_maker(path, computing);
    if (opened.ok()) {
      RETURN_IF_ERROR(judge_checkpoint(path, *opened, sides));
      continue;
    }
    if (paths.size() == 1 || (!sides && path == paths.back())) return opened.error();
    std::cerr << fmt::format("troupe: left out: {}\n", opened.error().message);
  }
  if (line_.has("by")) {
    RETURN_IF_ERROR(check_ranked_by(*sides));
  }
  std::ranges::stable_sort(sides->generated, {}, [&](const model::RankedSample& sample) {
    return distance(sides->by, sample);
  });
  if (line_.has("report") && backend_ != nullptr) {
    const Result<Trained> best = launch::open_maker(sides->generated.front().name, computing);
    const bool has_one = best.ok() && best->topology.model.gan.task == model::Task::kGan;
    Result<void> asked;
    if (has_one) asked = ask_discriminator(*best, *sides);
    if (!best.ok()) asked = best.error();
    if (!asked.ok()) {
      sides->outputs.clear();
      std::cerr << fmt::format("troupe: the report has no outputs of the discriminator: {}\n",
                               asked.error().message);
    }
  }
  return std::move(*sides);
}

Result<void> Validation::judge_checkpoint(const std::string& path, const Trained& trained,
                                          std::optional<Validated>& sides) {
  if (const std::string classifier = classifier_for(trained.topology); !classifier.empty()) {
    return judge_images(path, trained, classifier, sides);
  }
  trained.backend->prepare_thread();
  runtime::ThreadTeam team(team_.threads(), [&] { trained.backend->prepare_thread(); });
  ASSIGN_OR_RETURN(const auto maker, pipeline::ShowerMaker::create(trained.topology.model.gan,
                                                                   *trained.backend, team));
  if (!sides) {
    ASSIGN_OR_RETURN(sides, open_sides(trained, maker->shape().space));
  }
  const pipeline::NetworkState& network = trained.maker();
  const std::size_t all = sides->data->energies.size();
  auto options = measuring(trained.topology, sides->data->sample.options());
  std::vector<model::SampledColumn> columns;
  for (const model::SampledColumn& column : sides->data->made) columns.push_back({column.name, {}});
  const auto& made_here = trained.topology.model.gan.discriminator.columns;
  if (!line_.has("against") &&
      !std::ranges::equal(columns, made_here, {}, &model::SampledColumn::name)) {
    return Error{ErrorKind::kUsage,
                 fmt::format("{} makes other columns than the first of these checkpoints", path)};
  }
  options.as_made = [&](std::size_t, std::span<const float>, std::span<const float> made) {
    for (std::size_t k = 0; k < columns.size(); ++k) {
      columns[k].numbers.push_back(static_cast<double>(made[k]));
    }
  };
  const auto sample =
      pipeline::measure_generated(*maker, network.weights, network.moving, *sides->data, options,
                                  line_.get<std::uint64_t>("seed"), {},
                                  [&](std::size_t made) { return tell_(made, all).ok(); });
  CHECK(sample.has_value(), "nobody ends it");
  judge(path, *sample, 0, *sides, columns);
  return {};
}

std::string Validation::classifier_for(const config::Topology& topology) const {
  std::string path = topology.validator.judge.value_or("");
  line_.take("judge", path);
  return path;
}

Result<void> Validation::judge_images(const std::string& path, const Trained& trained,
                                      const std::string& classifier,
                                      std::optional<Validated>& sides) {
  const config::Topology& topology = trained.topology;
  trained.backend->prepare_thread();
  runtime::ThreadTeam team(team_.threads(), [&] { trained.backend->prepare_thread(); });
  ASSIGN_OR_RETURN(const auto maker,
                   pipeline::ShowerMaker::create(topology.model.gan, *trained.backend, team));
  if (line_.has("report")) {
    return Error{ErrorKind::kUsage,
                 "--report: the page is of showers; there is none of images that a classifier "
                 "judges"};
  }
  if (!sides) {
    runtime::FileDisk disk;
    ASSIGN_OR_RETURN(const std::string file, checkpoint_at(classifier, disk));
    ASSIGN_OR_RETURN(judge_, launch::open_judge(file, topology));
    ASSIGN_OR_RETURN(pipeline::Dataset dataset, open_data(topology));
    sides.emplace();
    ASSIGN_OR_RETURN(sides->images,
                     pipeline::judge_dataset(*judge_, dataset, line_.get<std::uint64_t>("events"),
                                             topology.model.gan.latent));
    std::string word = topology.validator.best;
    line_.take("by", word);
    const std::string meant = model::class_figure_meant(word);
    sides->by = meant.empty() ? word : meant;
  }
  const std::uint64_t seed = line_.get<std::uint64_t>("seed");
  const pipeline::NetworkState& generator = trained.maker();
  const auto made = pipeline::judge_generated(
      *judge_, *maker, {generator.weights, generator.moving}, *sides->images, seed);
  CHECK(made.has_value(), "nobody ends it");
  const model::ClassFigureOptions options{line_.get<int>("replicas"), seed, tell_draws()};
  model::RankedSample& judged = sides->generated.emplace_back();
  judged.name = path;
  judged.events = made->count();
  judged.figures = model::compute_class_figures(sides->images->images, *made, options, team_);
  return {};
}

Result<Validated> Validation::open_sides(const Trained& trained, const model::Extent& space) {
  const config::Topology& topology = trained.topology;
  const bool angle = model::uses_angle(topology.model.gan.latent);
  ASSIGN_OR_RETURN(pipeline::Dataset dataset, open_data(topology));
  auto options = measuring(topology, statistics(topology.validator, space, angle));
  if (!line_.has("against")) options.made = config::made_columns(topology);
  ASSIGN_OR_RETURN(auto data, pipeline::measure_dataset(
                                  dataset, options, line_.get<std::uint64_t>("events"), {}, tell_));
  RETURN_IF_ERROR(check_usable(data.sample));
  set_bins(topology.validator, data.sample);
  Validated sides{std::move(data)};
  sides.remarks = model::find_remarks(sides.data->sample, bad_of_all(dataset, sides.data->sample));
  sides.by = by(topology.validator);
  if (line_.has("by") && model::find_figure(model::figure_list(angle), sides.by) == nullptr) {
    return Error{ErrorKind::kUsage,
                 fmt::format("--by: the model is told no angle, so there is no {}", sides.by)};
  }
  return sides;
}

// Reads the data once more and makes the showers again, since samples keep no images.
Result<void> Validation::ask_discriminator(const Trained& trained, Validated& sides) {
  const model::GanDescription& gan = trained.topology.model.gan;
  const pipeline::NetworkState& discriminator = trained.checkpoint.state.discriminator;
  trained.backend->prepare_thread();
  runtime::ThreadTeam team(team_.threads(), [&] { trained.backend->prepare_thread(); });
  ASSIGN_OR_RETURN(const auto reader, pipeline::DiscriminatorReader::create(gan, *backend_, team));
  ASSIGN_OR_RETURN(const auto maker, pipeline::ShowerMaker::create(gan, *trained.backend, team));
  ASSIGN_OR_RETURN(pipeline::Dataset dataset, open_data(trained.topology));
  sides.outputs = reader->outputs();
  const auto read = [&](const pipeline::JudgedImages& images, auto side) {
    reader->read(discriminator.weights, discriminator.moving, images, side, sides.outputs);
  };
  const auto cells = static_cast<std::size_t>(maker->cells());
  const std::size_t all = sides.data->energies.size();
  std::vector<float> images(std::min(all, kAskedAtOnce) * cells);
  for (std::size_t first = 0; first < all; first += kAskedAtOnce) {
    std::vector<std::uint64_t> ids(std::min(kAskedAtOnce, all - first));
    std::iota(ids.begin(), ids.end(), first);
    pipeline::Batch batch;
    RETURN_IF_ERROR(dataset.read(ids, batch));
    read({batch.images.as<float>(), batch.energies(), batch.angles(), batch.ecals()},
         &model::DiscriminatorOutput::data);

    pipeline::GenerationRequest request;
    request.energies = batch.energies();
    if (model::uses_angle(gan.latent)) request.angles = batch.angles();
    for (std::size_t k = 0; k < model::columns_of(gan.latent).size(); ++k) {
      request.columns.push_back(batch.column(k));
    }
    request.seed = line_.get<std::uint64_t>("seed");
    request.first_event = static_cast<std::uint32_t>(first);
    const pipeline::NetworkState& generator = trained.checkpoint.state.generator;
    const std::span<float> made(images.data(), ids.size() * cells);
    maker->make(generator.weights, generator.moving, request, made);
    std::vector<float> ecals;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const double ecal = sides.best->showers()[first + i].found.ecal_gev;
      ecals.push_back(static_cast<float>(ecal * gan.data_scale));
    }
    read({made, batch.energies(), batch.angles(), ecals}, &model::DiscriminatorOutput::generated);
  }
  return {};
}

std::function<bool(double)> Validation::tell_draws() {
  return [last = runtime::steady_now()](double share) mutable {
    const auto now = runtime::steady_now();
    if (now - last > std::chrono::seconds(2)) {
      last = now;
      std::cerr << fmt::format("figures: {:.0f} %\n", 100.0 * share);
    }
    return true;
  };
}

void Validation::judge(const std::string& name, const model::ShowerSample& generated,
                       std::uint64_t left_out, Validated& sides,
                       const std::vector<model::SampledColumn>& columns) {
  model::FigureOptions options;
  options.replicas = line_.get<int>("replicas");
  options.seed = line_.get<std::uint64_t>("seed");
  options.classifier = backend_.get();
  options.going_on = tell_draws();
  model::RankedSample judged;
  judged.name = name;
  judged.events = generated.showers().size();
  judged.left_out = left_out;
  judged.figures = model::compute_figures(sides.data->sample, generated, options, team_);
  judged.faults = model::find_faults(sides.data->sample, generated, judged.figures, left_out);
  if (!columns.empty()) {
    std::ranges::move(model::compute_column_figures({sides.data->sample, sides.data->made},
                                                    {generated, columns}, options, team_),
                      std::back_inserter(judged.figures));
  }
  const auto ahead = [&](const model::RankedSample& other) {
    return distance(sides.by, judged) < distance(sides.by, other);
  };
  if (std::ranges::all_of(sides.generated, ahead)) sides.best = generated;
  sides.generated.push_back(std::move(judged));
}

}  // namespace troupe
