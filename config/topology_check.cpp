#include "config/topology_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "config/network_check.h"
#include "config/shipped.h"
#include "config/strategy_check.h"
#include "config/workers.h"
#include "model/layer_rules.h"
#include "model/physics/class_figures.h"
#include "model/physics/figures.h"
#include "pipeline/data/dataset_file.h"
#include "pipeline/data/output_meter.h"
#include "pipeline/data/shower_generator.h"

namespace troupe::config {
namespace {

using model::GanDescription;
using model::Shape;
using pipeline::DatasetOptions;

pipeline::ImageShape data_shape(const GanDescription& gan) {
  const Shape input = model::image_shape(gan);
  pipeline::ImageShape shape;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    shape.space[axis] = static_cast<std::uint32_t>(input.space[axis]);
  }
  shape.channels = static_cast<std::uint32_t>(input.channels);
  return shape;
}

std::optional<pipeline::DetectorKind> detector_of(pipeline::DataSchema schema,
                                                  const pipeline::ImageShape& shape) {
  if (shape.channels != 1) return std::nullopt;
  return pipeline::find_detector(schema, shape.space);
}

void check_model(const Topology& topology, Reader& reader) {
  const GanDescription& gan = topology.model.gan;
  const bool makes = gan.task == model::Task::kGan;
  if ((makes && gan.generator.layers.empty()) || gan.discriminator.layers.empty() ||
      gan.losses.empty()) {
    return reader.problem_at(
        "model", fmt::format("give zoo: NAME ({}), or {} and losses", fmt::join(zoo_names(), ", "),
                             makes ? "generator, discriminator" : "network"));
  }
  check_networks(gan, reader);
  if (makes && !reader.has_problem_below("train")) check_fake_conditions(gan, reader);
}

// The numbers that the column of a term may have; empty: any.
std::vector<double> values_in(const GanDescription& gan, const model::LossTerm& term) {
  if (!term.tells_classes()) return {};
  const model::NetworkShapes shapes = model::infer_shapes(gan.discriminator);
  for (std::size_t i = 0; i < shapes.layers.size(); ++i) {
    if (gan.discriminator.layers[i].name != term.output) continue;
    return model::values_of(term, shapes.layers[i]);
  }
  return {};
}

// The numbers that the events' column may have; empty: any.
std::vector<double> values_in(const GanDescription& gan, const std::string& column) {
  for (const model::LossTerm& term : gan.losses) {
    if (term.target != model::Target::kColumn || term.column != column) continue;
    if (auto values = values_in(gan, term); !values.empty()) return values;
  }
  return {};
}

// The fewest classes of the embeddings that read the column as a condition; 0: none does.
std::int64_t embedded_classes(const GanDescription& gan, const std::string& column) {
  std::int64_t classes = 0;
  for (const model::EmbeddedCondition& embedded : model::embedded_conditions(gan)) {
    if (embedded.condition != column) continue;
    classes = classes == 0 ? embedded.classes : std::min(classes, embedded.classes);
  }
  return classes;
}

// Whether the column is the target of a binary cross-entropy.
bool is_probability(const GanDescription& gan, const std::string& column) {
  return std::ranges::any_of(gan.losses, [&](const model::LossTerm& term) {
    return term.target == model::Target::kColumn && term.column == column &&
           term.tells_probability();
  });
}

// The slots of the schedule are those of the task.
void check_schedule(const Topology& topology, Reader& reader) {
  const model::Task task = topology.model.gan.task;
  for (const model::SlotKind slot : topology.train.options.schedule) {
    if (model::task_of(slot) == task) continue;
    const bool gan = task == model::Task::kGan;
    return reader.broken_rule(
        {"train.schedule", "model.task"},
        fmt::format(
            "{} is no step of task {}; it has {}", model::slot_name(slot), model::task_name(task),
            gan ? "d_real, d_fake, g and d_both" : model::slot_name(model::only_slot(task))));
  }
}

// The fields that ask for a column.
std::vector<std::string> askers_of(const GanDescription& gan, const std::string& column) {
  for (const model::LossTerm& term : gan.losses) {
    if (term.column == column) return {fmt::format("model.losses.{}.target", term.output)};
  }
  const auto& made = gan.discriminator.columns;
  if (std::find(made.begin(), made.end(), column) != made.end()) {
    return {"model.generator.makes." + column, "model.discriminator.columns"};
  }
  if (gan.task == model::Task::kSupervised) return {"model.network.conditions"};
  const bool makes = gan.task == model::Task::kGan;
  return {makes ? "model.generator.latent.conditions" : "model.diffusion.conditions"};
}

// Columns of files are looked for where these are opened.
void check_columns(const Topology& topology, Reader& reader) {
  const GanDescription& gan = topology.model.gan;
  for (const model::LossTerm& term : gan.losses) {
    if (!term.tells_classes()) continue;
    const std::string at = fmt::format("model.losses.{}.", term.output);
    if (term.target != model::Target::kColumn) {
      reader.broken_rule({at + "target", at + "kind"},
                         "cross_entropy is of classes, which a column of the data has");
    } else if (values_in(gan, term) != values_in(gan, term.column)) {
      reader.broken_rule({at + "classes"},
                         fmt::format("another loss has other classes of {}", shown(term.column)));
    }
  }
  if (!topology.data.synthetic) return;
  const auto made =
      pipeline::synthetic_columns(topology.data.dataset.schema, topology.data.showers.showers);
  for (const std::string& column : model::columns_of(gan)) {
    if (pipeline::names_column(column, made)) continue;
    reader.broken_rule(askers_of(gan, column),
                       fmt::format("generated showers have no column \"{}\"{}", shown(column),
                                   suggestion(column, made)));
  }
}

// Targets that are taken before data.preprocessing.power need outputs that undo it.
void check_power(const Topology& topology, Reader& reader) {
  const double power = topology.data.dataset.preprocessing->power;
  for (const model::LossTerm& term : topology.model.gan.losses) {
    const auto exponent = exponent_of_cells(topology.model.gan.discriminator, term);
    if (!exponent || std::abs(*exponent * power - 1.0) < 1e-6) continue;
    const std::string otherwise =
        power == 1.0 ? std::string("the image itself")
                     : fmt::format("a `power` layer of exponent {:.9g}", 1.0 / power);
    reader.broken_rule(
        {"data.preprocessing.power"},
        fmt::format("is {}, but the output \"{}\" reads cells to the power {} for a "
                    "target taken before any power; set it to {:.9g}, or let that "
                    "output read {}",
                    power, shown(term.output), *exponent, 1.0 / *exponent, otherwise));
  }
}

// "lcd-fixed and 25x25x25 cells, ...": all that showers can be made for.
std::string made_showers() {
  std::vector<std::string> all;
  for (const pipeline::DetectorKind kind : pipeline::kDetectorKinds) {
    const pipeline::Detector& each = pipeline::detector(kind);
    all.push_back(
        fmt::format("{} and {} cells", pipeline::text(each.schema), fmt::join(each.shape, "x")));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

void check_synthetic(const Topology& topology, Reader& reader) {
  if (!topology.data.synthetic) return;
  const auto schema = topology.data.dataset.schema;
  const GanDescription& gan = topology.model.gan;
  const Shape image = model::image_shape(gan);
  const auto kind = detector_of(schema, data_shape(gan));
  if (!kind) {
    return reader.broken_rule(
        {"data.train", "data.schema", judge_path(gan) + ".input"},
        fmt::format("no detector of the shower generator has schema {} and {}{}; give files, or "
                    "one of: {}",
                    pipeline::text(schema), model::cells_text(image),
                    image.channels == 1 ? "" : fmt::format(" of {} channels", image.channels),
                    made_showers()));
  }
  pipeline::ShowerOptions showers = topology.data.showers.showers;
  showers.detector = *kind;
  const auto made = pipeline::ShowerGenerator::create(showers);
  if (made.ok()) return;
  std::vector<std::string> fields{"data.synthetic.max_angle", "data.synthetic.min_angle"};
  showers.max_angle_rad.reset();
  if (!pipeline::ShowerGenerator::create(showers).ok()) std::reverse(fields.begin(), fields.end());
  reader.broken_rule(fields, made.error().message);
}

// A run on too few events would end when it has made them.
void check_event_count(const Topology& topology, Reader& reader) {
  if (!topology.data.synthetic) return;
  // How many workers there will be is not known yet: see check_workers().
  const std::string what = event_shortage(topology, 1);
  if (!what.empty()) reader.broken_rule(event_shortage_fields(), what);
}

void check_data(const Topology& topology, Reader& reader) {
  const DatasetOptions& options = topology.data.dataset;
  if (!options.binning.empty() && options.schema != pipeline::DataSchema::kCaloChallenge) {
    reader.broken_rule({"data.binning", "data.schema"},
                       fmt::format("acts only with schema calochallenge; the schema is {}",
                                   pipeline::text(options.schema)));
  }
  if (options.schema != pipeline::DataSchema::kCustom) return;
  if (topology.data.synthetic || options.names.value_or(pipeline::DatasetNames{}).energy.empty()) {
    const bool made = topology.data.synthetic;
    reader.broken_rule({"data.schema", made ? "data.train" : "data.names"},
                       made ? "generated showers have schema lcd-fixed or lcd-angle"
                            : "custom needs data.names with the names of image and energy");
  }
}

void check_test_part(const Topology& topology, Reader& reader) {
  const pipeline::DatasetOptions& options = topology.data.dataset;
  if (options.test_part == 0 || options.test_part < options.test_one_in) return;
  reader.broken_rule({"data.test_part", "data.test_one_in"},
                     fmt::format("{} is no part of {}; they are counted from 0", options.test_part,
                                 options.test_one_in));
}

void check_validator(const Topology& topology, Reader& reader) {
  const GanDescription& gan = topology.model.gan;
  if (gan.task == model::Task::kSupervised && !topology.validator.test_losses) {
    reader.broken_rule(
        {"actors.validator.test_losses", "model.task"},
        "a supervised task is judged by losses of test events, and tells them always");
  }
  if (gan.task == model::Task::kSupervised && topology.validator.judge) {
    reader.broken_rule({"actors.validator.judge", "model.task"},
                       "a classifier judges generated images, and a supervised task makes none");
  }
  if (!topology.validator.validates()) return;
  const std::uint32_t one_in = topology.data.dataset.test_one_in;
  const std::int64_t channels = model::image_shape(gan).channels;
  if (gan.task != model::Task::kSupervised && !topology.validator.judge && channels != 1) {
    reader.broken_rule({"actors.validator.every", judge_path(gan) + ".input"},
                       fmt::format("showers have one channel, and the images here {}; give a "
                                   "classifier as actors.validator.judge, or set "
                                   "actors.validator.every to none",
                                   channels));
  } else if (one_in == 0) {
    reader.broken_rule(
        {"data.test_one_in", "actors.validator.every"},
        "data.test_one_in 0 leaves no events for actors.validator, whose `every` is then none");
  } else if (topology.data.synthetic && one_in > topology.data.showers.events) {
    reader.broken_rule(
        {"data.test_one_in", "data.synthetic.events", "actors.validator.every"},
        fmt::format("one in {} of {} generated events leaves none for actors.validator; "
                    "lower it, or set actors.validator.every to none",
                    one_in, topology.data.showers.events));
  }
}

// A figure that these samples cannot have would never choose or stop. `field` asks for it.
void check_figure(const Topology& topology, const std::string& field, const std::string& figure,
                  Reader& reader) {
  const bool angle = model::uses_angle(topology.model.gan.latent);
  const bool in_bins = figure.ends_with("_angle");
  if (!angle && (in_bins || figure.starts_with("angle."))) {
    reader.broken_rule({field},
                       fmt::format("this model is told no angle, so there is no {}", figure));
  } else if (in_bins && figure != "merit_angle" && topology.validator.angle_bins.empty()) {
    reader.broken_rule({field, "actors.validator.angle_bins"},
                       fmt::format("{} needs actors.validator.angle_bins", figure));
  }
}

// The answer to a word for the best state, or for train.stop, that a judge has no figure of.
std::string no_class_figure(const std::string& word) {
  return fmt::format("a classifier judges, and finds no {}; take one of {}", shown(word),
                     fmt::join(model::class_figure_words(), ", "));
}

constexpr const char* kNoOutputs =
    "only a supervised task is judged by its loss and its outputs; others by figures of showers, "
    "such as merit";

// `word`, which `field` has, is a figure of the supervised task.
void check_quality(const Topology& topology, const std::string& field, const std::string& word,
                   Reader& reader) {
  const std::vector<std::string> words = pipeline::quality_words(topology.model.gan);
  if (std::ranges::find(words, word) != words.end()) return;
  reader.broken_rule({field, "model.task"},
                     fmt::format("a supervised task has no {}; take one of {}", shown(word),
                                 fmt::join(words, ", ")));
}

void check_best(const Topology& topology, Reader& reader) {
  const ValidatorSection& validator = topology.validator;
  if (!model::uses_angle(topology.model.gan.latent) && !validator.angle_bins.empty()) {
    reader.broken_rule({"actors.validator.angle_bins"}, "this model is told no angle");
  }
  const std::string field = "actors.validator.best";
  if (topology.model.gan.task == model::Task::kSupervised) {
    return check_quality(topology, field, pipeline::quality_meant(validator.best), reader);
  }
  if (validator.judge) {
    if (!model::class_figure_meant(validator.best).empty()) return;
    return reader.broken_rule({"actors.validator.best", "actors.validator.judge"},
                              no_class_figure(validator.best));
  }
  if (model::is_class_figure(validator.best)) {
    return reader.broken_rule({"actors.validator.best"},
                              "a classifier finds it; give one as actors.validator.judge");
  }
  const std::string figure = model::figure_meant(validator.best);
  if (!figure.empty()) return check_figure(topology, field, figure, reader);
  reader.broken_rule({field, "model.task"}, kNoOutputs);
}

// A gradient penalty is computed between real and generated events, each by itself.
void check_penalty(const Topology& topology, Reader& reader) {
  const auto& losses = topology.model.gan.losses;
  const auto penalty = std::find_if(losses.begin(), losses.end(), [](const auto& term) {
    return term.kind == model::LossKind::kGradientPenalty;
  });
  if (penalty == losses.end()) return;
  const std::string at = fmt::format("model.losses.{}.gradient_penalty", penalty->output);
  const auto& schedule = topology.train.options.schedule;
  if (std::none_of(schedule.begin(), schedule.end(), model::makes_fakes)) {
    reader.broken_rule({at, "train.schedule"},
                       "a gradient penalty acts in d_fake and d_both, of which there is none");
  }
  if (const std::string fault = model::penalty_fault(topology.model.gan); !fault.empty()) {
    reader.broken_rule({at, "model.discriminator.columns", "model.discriminator.layers"},
                       shown(fault, 400));
  }
  // It is the difference of two passes that are close to each other.
  if (topology.model.precision == Precision::kBf16) {
    reader.broken_rule(
        {at, "model.precision"},
        "a gradient penalty is lost in what bf16 rounds off; set model.precision to fp32");
  } else if (topology.model.kernels == Kernels::kFastest && topology.replica.device != kProcessor) {
    reader.broken_rule(
        {at, "model.kernels", "actors.replica.device"},
        "a gradient penalty is lost in what tensor cores round off; set model.kernels to "
        "portable");
  }
}

void check_stop_by_figure(const Topology& topology, Reader& reader) {
  const std::string field = "train.stop.metric";
  const std::string& word = topology.train.options.stop->figure;
  if (!topology.validator.validates()) {
    return reader.broken_rule({field, "actors.validator.every"},
                              "no validation finds a figure: actors.validator.every is none");
  }
  if (topology.model.gan.task == model::Task::kSupervised) {
    return check_quality(topology, field, word, reader);
  }
  if (topology.validator.judge) {
    if (model::is_class_figure(word)) return;
    return reader.broken_rule({field, "actors.validator.judge"}, no_class_figure(word));
  }
  const std::string figure = model::figure_meant(word);
  if (!figure.empty()) return check_figure(topology, field, figure, reader);
  if (word == "loss" || word.find('/') != std::string::npos) {
    return reader.broken_rule({field, "model.task"}, kNoOutputs);
  }
  reader.broken_rule(
      {field}, fmt::format("the validator has no figure \"{}\" (docs/physics.md lists them){}",
                           shown(word), suggestion(word, model::figure_words())));
}

// A value that is never there would never end training.
void check_stop(const Topology& topology, Reader& reader) {
  const auto& options = topology.train.options;
  if (!options.stop) return;
  if (!options.stop->figure.empty()) return check_stop_by_figure(topology, reader);
  const auto& schedule = options.schedule;
  const std::string& wanted = options.stop->term;
  std::vector<std::string> terms;
  bool of_fakes = false;
  for (const auto& term : topology.model.gan.losses) {
    terms.push_back(term.name());
    const bool is_penalty = term.kind == model::LossKind::kGradientPenalty;
    of_fakes = of_fakes || (is_penalty && term.name() == wanted);
  }
  const bool has_steps = std::any_of(schedule.begin(), schedule.end(), [&](model::SlotKind slot) {
    return pipeline::updated_network(slot) == options.stop->network &&
           (!of_fakes || model::makes_fakes(slot));
  });
  if (!has_steps) {
    reader.broken_rule({"train.stop.metric", "train.schedule"},
                       fmt::format("the schedule has no step of the {} that has this loss",
                                   pipeline::kNetworkNames.at(options.stop->network)));
  }
  if (wanted.empty() || std::find(terms.begin(), terms.end(), wanted) != terms.end()) return;
  reader.broken_rule({"train.stop.metric", "model.losses"},
                     fmt::format("model.losses has no term \"{}\": it has {}", shown(wanted),
                                 fmt::join(terms, ", ")));
}

// A rule and the sections that it reads. A problem of theirs would make the rule report one mistake
// twice.
struct Rule {
  void (*check)(const Topology&, Reader&);
  std::vector<std::string> reads;
};

}  // namespace

void check_topology(const YamlValue& file, const Topology& topology, Reader& reader) {
  // A rule about the model comes after check_model(), which says where the model is incomplete.
  static const std::vector<Rule> kRules{
      {check_model, {"model"}},
      {check_schedule, {"model", "train"}},
      {check_rounds, {"model", "train"}},
      {check_columns, {"model", "data"}},
      {check_data, {"data"}},
      {check_synthetic, {"model", "data"}},
      {check_power, {"model", "data"}},
      {check_event_count, {"data", "train"}},
      {check_test_part, {"data"}},
      {check_validator, {"model", "data", "actors.validator"}},
      {check_best, {"model", "actors.validator"}},
      {check_penalty, {"model", "train", "actors.replica"}},
      {check_stop, {"model", "train"}},
      {check_strategy, {"train", "actors.reducer"}},
  };
  const auto is_known = [&](const std::string& section) {
    const bool must_be_given = section == "model" || section == "data";
    return (!must_be_given || file.find(section) != nullptr) && !reader.has_problem_below(section);
  };
  for (const Rule& rule : kRules) {
    if (std::all_of(rule.reads.begin(), rule.reads.end(), is_known)) rule.check(topology, reader);
  }
}

void derive(Topology& topology) {
  GanDescription& gan = topology.model.gan;
  gan.generator.name = "generator";
  gan.generator.input = Shape::features(gan.latent.size);
  gan.discriminator.name = gan.task == model::Task::kGan ? "discriminator" : "network";
  DatasetOptions& data = topology.data.dataset;
  data.columns.clear();
  for (const std::string& column : model::columns_of(gan)) {
    data.columns.push_back({column, values_in(gan, column), is_probability(gan, column),
                            embedded_classes(gan, column)});
  }
  const auto& schedule = topology.train.options.schedule;
  gan.judges_both =
      std::find(schedule.begin(), schedule.end(), model::SlotKind::kDBoth) != schedule.end();
  const auto& options = topology.train.options;
  gan.worker_arrays.reset();
  if (options.strategy.has_workers()) {
    gan.worker_arrays = {model::optimiser_arrays(options.generator_optimiser),
                         model::optimiser_arrays(options.discriminator_optimiser)};
  }
  data.expected_shape = data_shape(gan);
  gan.data_scale = pipeline::facts_of(data.schema).units_per_gev * data.preprocessing->scale;
  if (const auto kind = detector_of(data.schema, data.expected_shape)) {
    topology.data.showers.showers.detector = *kind;
  }
}

}  // namespace troupe::config
