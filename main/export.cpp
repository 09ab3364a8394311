#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>
#include <span>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/workers.h"
#include "launch/run/trained.h"
#include "main/command_line.h"
#include "main/common_options.h"
#include "main/ending_signal.h"
#include "main/files.h"
#include "pipeline/data/generation.h"
#include "pipeline/data/remote_source.h"
#include "pipeline/leaving/keras_file.h"
#include "pipeline/leaving/model_card.h"
#include "pipeline/leaving/numpy_archive.h"
#include "pipeline/leaving/onnx_model.h"
#include "pipeline/leaving/warm_start.h"
#include "runtime/base/disk.h"
#include "runtime/base/hash.h"
#include "runtime/base/json_text.h"
#include "runtime/base/new_file.h"

namespace troupe {
namespace {

using launch::Trained;
using pipeline::TrainedModel;
using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr std::size_t kMostMetricsBytes = std::size_t{1} << 30;
constexpr const char* kProducer = "troupe " TROUPE_VERSION;

// What is to be known of the model wherever it goes.
std::vector<std::pair<std::string, std::string>> facts_of(const Trained& trained,
                                                          const std::string& licence) {
  const config::Topology& topology = trained.topology;
  const pipeline::Checkpoint& checkpoint = trained.checkpoint;
  const pipeline::DatasetOptions& dataset = topology.data.dataset;
  const auto& preprocessing = *dataset.preprocessing;
  std::vector<std::string> data;
  for (const std::string& path : dataset.paths) data.push_back(pipeline::shown_address(path));
  std::vector<std::pair<std::string, std::string>> facts{
      {"name", topology.name},
      {"model", checkpoint.model},
      {"licence", licence},
      {"data", fmt::format("{}", fmt::join(data, ", "))},
      {"data_schema", std::string(pipeline::text(dataset.schema))},
      {"data_fingerprint", checkpoint.state.data_fingerprint.text()},
      {"cell_power", fmt::format("{}", preprocessing.power)},
      {"cell_scale", fmt::format("{}", preprocessing.scale)},
      {"iterations", fmt::format("{}", checkpoint.state.iteration)},
      {"epochs", fmt::format("{}", checkpoint.state.epoch)},
      {"events", fmt::format("{}", checkpoint.state.ledger_events)},
      {"seed", fmt::format("{}", checkpoint.state.seed)},
      {"numerics", checkpoint.state.numerics_class},
      {"topology_hash", checkpoint.topology_hash.text()},
      {"state_hash", checkpoint.state_hash.text()},
      {"first_weights", checkpoint.origin.empty() ? "by the seed" : checkpoint.origin},
      {"written_by", kProducer}};
  if (!trained.mean.empty()) facts.emplace_back("weights", trained.mean);
  return facts;
}

// Numbers of an object and of those in it, by names with dots.
void add_numbers(const nlohmann::json& object, const std::string& before,
                 std::vector<std::pair<std::string, std::string>>& figures) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = before.empty() ? key : before + "." + key;
    if (value.is_object()) add_numbers(value, name, figures);
    if (value.is_number()) figures.emplace_back(name, value.dump());
  }
}

// A member of an object; null where there is none, or no object.
const nlohmann::json& member_of(const nlohmann::json& object, const char* name) {
  static const nlohmann::json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(name);
  return found == object.end() ? kNothing : *found;
}

// Gives the card the figures of `row` of the validation that the run made of this step; none where
// there is no run around the checkpoint, or it has made none. Other lines are passed over,
// whatever stands there.
void add_validation(const std::string& checkpoint, std::uint64_t step, const char* row_name,
                    pipeline::ModelCard& card) {
  std::error_code ignored;
  const auto run =
      std::filesystem::weakly_canonical(checkpoint, ignored).parent_path().parent_path();
  const auto text = runtime::read_file((run / "metrics.jsonl").string(), kMostMetricsBytes);
  if (!text.ok()) return;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("\"kind\":\"validation\"") == std::string::npos) continue;
    const auto record = nlohmann::json::parse(line, nullptr, false);
    const nlohmann::json& of_step = member_of(record, "step");
    const nlohmann::json& rows = member_of(member_of(record, "fields"), "rows");
    if (!of_step.is_number_unsigned() || of_step != step || !rows.is_array()) continue;
    card.figures.clear();
    card.unlike.clear();
    for (const auto& row : rows) {
      if (member_of(row, "name") != row_name) continue;
      add_numbers(row, "", card.figures);
      for (const auto& word : member_of(member_of(row, "comparison"), "unlike")) {
        if (word.is_string()) card.unlike.push_back(word);
      }
    }
  }
}

// A file that leaves, before it is written.
struct Leaving {
  std::string path;
  std::string bytes;
  std::string what;
};

struct Leave {
  std::vector<Leaving> files;
  std::string use;  // of the model card
};

bool has_generator(const TrainedModel& trained) { return trained.gan.task == model::Task::kGan; }

// For a task of one network.
std::string use_of_network(const TrainedModel& trained) {
  if (trained.gan.task == model::Task::kSupervised) {
    const std::vector<std::string>& told = trained.gan.discriminator.conditions;
    return fmt::format(
        "Input `input` (N, x, y, z, channels): cells = ({} x energy in GeV)^{}.{} Each output has "
        "the name of its layer.\n",
        trained.units.units_per_gev, trained.units.power,
        told.empty() ? ""
                     : fmt::format(" Input `conditions` (N, {}): {}; energies are in units of 100 "
                                   "GeV, angles in rad.",
                                   told.size(), fmt::join(told, ", ")));
  }
  return fmt::format(
      "Input `input` (N, x, y, z, channels): a noisy shower, then the level t from 0 to 1 and the "
      "conditions ({}), each the same in every cell. Output: the velocity v. With a = (pi / 2) t^2 "
      "the shower without noise is cos(a) z - sin(a) v, where z is the noisy one; "
      "`model/diffusion.h` of Troupe has the steps from noise to showers, of which this model was "
      "meant for {}. Energies are in units of 100 GeV, angles in rad; energy of a cell in GeV = "
      "cell^(1 / {}) / {}, where a negative cell counts as 0.\n",
      fmt::join(trained.gan.latent.conditions, ", "), trained.gan.diffusion.steps,
      trained.units.power, trained.units.units_per_gev);
}

std::string use_of_onnx(pipeline::OnnxFlavour flavour, const TrainedModel& trained) {
  if (!has_generator(trained)) return use_of_network(trained);
  const auto& latent = trained.gan.latent;
  std::vector<std::string> columns;
  for (const auto& made : trained.gan.generator.makes) columns.push_back(made.column);
  const auto with_columns = [&](const char* before) {
    return columns.empty() ? std::string()
                           : fmt::format(" {}: {}.", before, fmt::join(columns, ", "));
  };
  if (flavour == pipeline::OnnxFlavour::kPar04) {
    const bool multiply = latent.mode == model::LatentMode::kMultiply;
    const auto noise =
        latent.size - (multiply ? 0 : static_cast<std::int64_t>(latent.conditions.size()));
    return fmt::format(
        "Input `input` (N, {}): {} normal random numbers, energy / 1.024 TeV, angle / 90 degrees, "
        "and two numbers that are not used. Output `shower`: the energy of each cell divided by "
        "that of the particle, x outermost, z innermost. In Geant4's example Par04:\n"
        "`/Par04/inference/setSizeLatentVector {}`, `/Par04/inference/setSizeConditionVector 4`, "
        "and a mesh with as many cells as the model has. Par04's own mesh is cylindrical; the "
        "cells of this model are those of its data.{}\n",
        noise + 4, noise, noise, with_columns("Columns that it makes besides are left out"));
  }
  const std::string told = fmt::format("{}", fmt::join(latent.conditions, ", "));
  return fmt::format(
      "Input `latent` (N, {}): {}. Energies are in units of 100 GeV, angles in rad. Output "
      "`shower` "
      "(N, x, y, z, 1): cells in the units of training; energy in GeV = cell^(1 / {}) / {}, where "
      "a "
      "negative cell counts as 0.{}\n",
      latent.size,
      latent.mode == model::LatentMode::kMultiply
          ? fmt::format("normal random numbers, times the condition ({})", told)
      : told.empty() ? std::string("normal random numbers")
                     : fmt::format("the conditions ({}), then normal random numbers", told),
      trained.units.power, trained.units.units_per_gev,
      with_columns("Further outputs (N, 1), as the data have them"));
}

Result<Leave> leave_as_onnx(const CommandLine& line, const std::string& path,
                            const TrainedModel& trained) {
  const bool par04 = line.has("flavour") && line.get<std::string>("flavour") == "par04";
  const auto flavour = par04 ? pipeline::OnnxFlavour::kPar04 : pipeline::OnnxFlavour::k3dgan;
  ASSIGN_OR_RETURN(std::string bytes, pipeline::onnx_model(trained, flavour, kProducer));
  const char* const what = has_generator(trained) ? "generator" : "network";
  return Leave{{{path, std::move(bytes), fmt::format("the {}, ONNX opset 17", what)}},
               use_of_onnx(flavour, trained)};
}

// A sentence; "" for networks whose batch normalisation is that of Keras.
std::string epsilons_of(const model::GanDescription& gan) {
  const auto others = pipeline::epsilons_unlike_keras(gan);
  if (others.empty()) return "";
  return fmt::format(
      " Their `BatchNormalization` layers need `epsilon={}`; without it Keras adds {:g} to the "
      "variance, which makes other showers.",
      fmt::join(others, "` or `epsilon="), pipeline::kKerasEpsilon);
}

Result<Leave> leave_as_keras(const CommandLine&, const std::string& path,
                             const TrainedModel& trained) {
  const auto bytes_of = [&](std::size_t network) -> Result<std::string> {
    ASSIGN_OR_RETURN(const runtime::Buffer file, pipeline::keras_file(trained, network));
    return std::string(reinterpret_cast<const char*>(file.data()), file.size());
  };
  ASSIGN_OR_RETURN(std::string discriminator, bytes_of(pipeline::kDiscriminator));
  if (!has_generator(trained)) {
    return Leave{{{path, std::move(discriminator), "weights of the network"}},
                 "Keras: build the network, then `load_weights(FILE)` by order." +
                     epsilons_of(trained.gan) + "\n"};
  }
  ASSIGN_OR_RETURN(std::string generator, bytes_of(pipeline::kGenerator));
  return Leave{{{path, std::move(generator), "weights of the generator"},
                {pipeline::keras_discriminator_path(path), std::move(discriminator),
                 "weights of the discriminator"}},
               "Keras: build the networks, then `load_weights(FILE)` by order. The weights stand "
               "as 3DGAN's own files have them: a model inside a model is one group." +
                   epsilons_of(trained.gan) + "\n"};
}

Result<Leave> leave_as_numpy(const CommandLine&, const std::string& path,
                             const TrainedModel& trained) {
  ASSIGN_OR_RETURN(std::string bytes, pipeline::numpy_archive(trained));
  const bool both = has_generator(trained);
  return Leave{{{path, std::move(bytes),
                 both ? "weights of both networks, NumPy" : "weights of the network, NumPy"}},
               fmt::format("`numpy.load(FILE)` gives arrays by names such as `{}/dense1/kernel`, "
                           "in the shapes of Keras.\n",
                           both ? "generator" : "network")};
}

struct Format {
  const char* option;
  Result<Leave> (*leave)(const CommandLine&, const std::string& path, const TrainedModel&);
};
constexpr Format kFormats[]{
    {"onnx", leave_as_onnx}, {"keras", leave_as_keras}, {"numpy", leave_as_numpy}};

std::string card_path(const std::string& path) { return path + ".md"; }

// The files of a format, the card last.
std::vector<std::string> paths_of(const Format& format, const CommandLine& line) {
  const auto path = line.get<std::string>(format.option);
  std::vector<std::string> paths{path};
  if (format.leave == leave_as_keras) paths.push_back(pipeline::keras_discriminator_path(path));
  paths.push_back(card_path(path));
  return paths;
}

Result<void> check_outputs(const CommandLine& line, const std::string& checkpoint) {
  std::set<std::filesystem::path> taken;
  for (const Format& format : kFormats) {
    if (!line.has(format.option)) continue;
    for (const std::string& each : paths_of(format, line)) {
      std::error_code missing;
      const auto file = std::filesystem::weakly_canonical(each, missing);
      if (!taken.insert(missing ? std::filesystem::path(each) : file).second) {
        return Error{ErrorKind::kUsage,
                     fmt::format("{} would be written twice; give --onnx, --keras and --numpy "
                                 "names of their own",
                                 each)};
      }
      RETURN_IF_ERROR(check_output_file(each, line.get<bool>("force"), {checkpoint}));
    }
  }
  return {};
}

// All files that are asked for. The card of a format is behind its files.
Result<std::vector<Leaving>> make_files(const CommandLine& line, const std::string& checkpoint) {
  launch::Computing computing;
  computing.raw = line.get<bool>("raw");
  ASSIGN_OR_RETURN(const Trained trained, launch::open_trained(checkpoint, computing));
  const TrainedModel model{trained.topology.model.gan, trained.checkpoint.state,
                           pipeline::image_units(trained.topology.data.dataset),
                           facts_of(trained, line.get<std::string>("licence"))};
  pipeline::ModelCard card;
  card.title = fmt::format("{} ({})", trained.topology.name, trained.checkpoint.model);
  const auto options = config::options_between_members(trained.topology);
  const bool is_supervised = model.gan.task == model::Task::kSupervised;
  add_validation(checkpoint, model.state.step(options.schedule.size()),
                 is_supervised ? "test" : "generated", card);
  std::vector<Leaving> all;
  for (const Format& format : kFormats) {
    if (!line.has(format.option)) continue;
    const auto path = line.get<std::string>(format.option);
    ASSIGN_OR_RETURN(Leave leave, format.leave(line, path, model));
    card.files.clear();
    card.use = leave.use;
    for (Leaving& file : leave.files) {
      card.files.push_back(fmt::format("`{}`: {}; XXH128 {} (`xxhsum -H2`)",
                                       std::filesystem::path(file.path).filename().string(),
                                       file.what, runtime::hash_of(file.bytes).text()));
      all.push_back(std::move(file));
    }
    all.push_back({card_path(path), pipeline::text_of(card, model), "model card"});
  }
  return all;
}

// Puts the files in their places once all of them are written, so that a full disk or a signal
// leaves none.
Result<void> write(const std::vector<Leaving>& files, const EndingSignal& ending) {
  std::vector<runtime::NewFile> written;
  for (const Leaving& file : files) {
    ASSIGN_OR_RETURN(runtime::NewFile begun, runtime::NewFile::create(file.path));
    RETURN_IF_ERROR(begun.write(0, std::as_bytes(std::span(file.bytes))));
    written.push_back(std::move(begun));
    RETURN_IF_ERROR(ending.check());
  }
  for (runtime::NewFile& file : written) RETURN_IF_ERROR(file.finish());
  return {};
}

// Returns the paths of all that was written.
Result<std::vector<std::string>> export_model(const CommandLine& line,
                                              const std::string& checkpoint,
                                              const EndingSignal& ending) {
  RETURN_IF_ERROR(check_outputs(line, checkpoint));
  ASSIGN_OR_RETURN(const std::vector<Leaving> files, make_files(line, checkpoint));
  RETURN_IF_ERROR(write(files, ending));
  std::vector<std::string> paths;
  for (const Leaving& file : files) paths.push_back(file.path);
  return paths;
}

int export_files(const CommandLine& line) {
  if (std::none_of(std::begin(kFormats), std::end(kFormats),
                   [&](const Format& format) { return line.has(format.option); })) {
    return line.usage_error("which file? --onnx, --keras or --numpy name it");
  }
  if (line.has("flavour") && !line.has("onnx")) {
    return line.usage_error("--flavour is for --onnx, which is not asked for");
  }
  const EndingSignal ending;
  runtime::FileDisk disk;
  const auto checkpoint = checkpoint_of(line, disk);
  if (!checkpoint.ok()) return report(checkpoint.error());
  const auto written = export_model(line, *checkpoint, ending);
  if (!written.ok()) return ending.code(report(written.error()));
  if (line.get<bool>("json")) {
    std::vector<std::string> names;
    for (const auto& path : *written) names.push_back(runtime::json_string(path));
    answer(fmt::format(R"("files":[{}],"checkpoint":{})", fmt::join(names, ","),
                       runtime::json_string(*checkpoint)));
  } else {
    for (const auto& path : *written) std::cout << path << "\n";
  }
  return 0;
}

Option file_option(const std::string& name, const std::string& about) {
  return {.name = name, .value = "FILE", .about = about, .takes = Takes::kFile};
}

}  // namespace

Command export_verb() {
  return {
      .name = "export",
      .summary = "a trained network as a file for other programs",
      .about =
          "Writes a trained generator, or the network of a task of one, as ONNX, as weights of "
          "Keras or as a NumPy archive, each with a model card beside it (FILE.md). A run's folder "
          "stands for its best "
          "checkpoint, or the newest where none was validated.",
      .example = "troupe export runs/demo --onnx generator.onnx",
      .forms = {"CHECKPOINT --onnx FILE [OPTION]...", "CHECKPOINT --keras FILE [OPTION]...",
                "CHECKPOINT --numpy FILE [OPTION]..."},
      .places = {{.name = "checkpoint", .asked = "which checkpoint?", .takes = Takes::kFile}},
      .options = {file_option("onnx", "the generator or the network, opset 17"),
                  {.name = "flavour",
                   .value = "WORD",
                   .about = "inputs and outputs of --onnx: latents as the network takes them (the "
                            "default), or those of Geant4's example Par04",
                   .takes = Takes::kWord,
                   .words = {"3dgan", "par04"}},
                  file_option("keras",
                              "weights of the generator or the network, in the order of 3DGAN's "
                              "files; the discriminator's stand beside it (_discriminator)"),
                  file_option("numpy", "weights of all networks (.npz)"),
                  {.name = "licence",
                   .value = "TEXT",
                   .about = "of the weights, for file and card",
                   .takes = Takes::kText,
                   .preset = "not stated"},
                  latest_option(),
                  raw_option(),
                  force_option(),
                  json_option()},
      .synonyms = {"save"},
      .carry_out = export_files};
}

}  // namespace troupe
