#include "pipeline/data/output_meter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "model/condition_rows.h"
#include "model/physics/roc.h"
#include "runtime/base/json_text.h"

namespace troupe::pipeline {
namespace {

using model::LossKind;
using runtime::Result;

constexpr std::int64_t kMeasuredAtOnce = 16;

std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.2f}%", 100.0 * *share) : "-";
}
std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{:.4f}", *value) : "-";
}

std::string line(const std::string& name, const std::string& events, const std::string& loss,
                 const std::string& accuracy, const std::string& area) {
  return fmt::format("{:<20}  {:>8}  {:>10}  {:>8}  {:>6}\n", name, events, loss, accuracy, area);
}

std::optional<double> area_of(std::span<const float> low, std::span<const float> high) {
  const auto once = [](std::span<const float> values) {
    return std::vector<std::uint32_t>(values.size(), 1);
  };
  const auto times_low = once(low), times_high = once(high);
  return model::area_under_curve(low, times_low, high, times_high);
}

struct QualityFigure {
  std::string name;
  std::optional<double> value, distance;  // from its ideal
};

// The whole loss first.
std::vector<QualityFigure> figures_of(const OutputQuality& quality) {
  std::vector<QualityFigure> figures{{"loss", quality.loss, quality.loss}};
  for (const TermQuality& term : quality.terms) {
    figures.push_back({term.output + "/loss", term.loss, term.loss});
    figures.push_back({term.output + "/accuracy", term.accuracy, term.error});
    const auto missed = term.area ? std::optional(1.0 - *term.area) : std::nullopt;
    figures.push_back({term.output + "/area", term.area, missed});
  }
  return figures;
}

// One without a value, where the quality does not have it.
QualityFigure figure_of(const OutputQuality& quality, std::string_view name) {
  const std::vector<QualityFigure> figures = figures_of(quality);
  const auto found = std::ranges::find(figures, name, &QualityFigure::name);
  return found == figures.end() ? QualityFigure{} : *found;
}

// "loss of test events", "kind's accuracy of test events".
std::string title_of(std::string_view figure) {
  const std::size_t slash = figure.rfind('/');
  if (slash == std::string_view::npos) return fmt::format("{} of test events", figure);
  return fmt::format("{}'s {} of test events", figure.substr(0, slash), figure.substr(slash + 1));
}

}  // namespace

std::vector<std::string> quality_words(const model::GanDescription& model) {
  std::vector<std::string> words{"loss"};
  const model::NetworkShapes shapes = model::infer_shapes(model.discriminator);
  for (const model::LossTerm& term : model.losses) {
    words.push_back(term.output + "/loss");
    if (!term.tells_classes() && !term.tells_probability()) continue;
    words.push_back(term.output + "/accuracy");
    const auto& layers = model.discriminator.layers;
    const auto layer = std::ranges::find(layers, term.output, &model::Layer::name);
    CHECK(layer != layers.end(), "every loss has an output");
    const model::Shape& shape = shapes.layers[static_cast<std::size_t>(layer - layers.begin())];
    if (term.tells_probability() || shape.channels == 2) words.push_back(term.output + "/area");
  }
  return words;
}

std::string quality_meant(std::string_view word) {
  return word == "merit" ? "loss" : std::string(word);
}

std::optional<double> quality_of(const OutputQuality& quality, std::string_view figure) {
  return figure_of(quality, figure).value;
}

double quality_distance(const OutputQuality& quality, std::string_view figure) {
  if (!std::isfinite(quality.loss)) return std::numeric_limits<double>::infinity();
  return figure_of(quality, figure).distance.value_or(std::numeric_limits<double>::infinity());
}

std::string quality_text(const OutputQuality& quality) {
  std::string text = line("output", "events", "loss", "accuracy", "area");
  const std::string events = fmt::format("{}", quality.events);
  for (const TermQuality& term : quality.terms) {
    text += line(term.output, events, fmt::format("{:.5g}", term.loss), percent(term.accuracy),
                 number(term.area));
  }
  text += line("all, weighted", events, fmt::format("{:.5g}", quality.loss), "", "");
  return text +
         "Of test events. accuracy: share whose class is the likeliest one; area: probability that "
         "one of\nthe second of two classes is ranked above one of the first.\n";
}

std::string quality_json(const OutputQuality& quality, std::string_view chosen) {
  std::string members;
  for (const QualityFigure& figure : figures_of(quality)) {
    if (!figure.value) continue;
    members += fmt::format("{}{}: {}", members.empty() ? "" : ", ",
                           runtime::json_string(figure.name), runtime::json_number(*figure.value));
  }
  const std::optional<double> value = quality_of(quality, chosen);
  return fmt::format(
      R"({{"rows": [{{"name": "test", "events": {}, "comparison": {{{}}}, )"
      R"("chosen": {{"figure": {}, "title": {}, "unit": "", "value": {}, "distance": {}}}}}]}})",
      quality.events, members, runtime::json_string(chosen), runtime::json_string(title_of(chosen)),
      value ? runtime::json_number(*value) : "null",
      runtime::json_number(quality_distance(quality, chosen)));
}

Result<std::unique_ptr<OutputMeter>> OutputMeter::create(const model::GanDescription& model,
                                                         const model::Backend& backend) {
  CHECK(model.task == model::Task::kSupervised && backend.memory().is_of_host());
  std::unique_ptr<OutputMeter> meter(new OutputMeter);
  model::ProgramOptions options;
  options.batch = kMeasuredAtOnce;
  options.network_number = 1;
  options.forward_training = options.backward_parameters = options.backward_input = false;
  ASSIGN_OR_RETURN(meter->program_, model::Program::compile(model.discriminator, backend, options));
  const std::vector<std::string>& columns = meter->columns_ = model::columns_of(model);
  for (const model::LossTerm& loss : model.losses) {
    Term& term = meter->terms_.emplace_back();
    term.loss = &loss;
    term.output = meter->program_->find_output(loss.output);
    CHECK(term.output >= 0, "every loss has an output");
    const model::Shape shape = meter->program_->output_shape(term.output);
    term.size = static_cast<std::size_t>(shape.elements());
    const std::vector<double> values = model::values_of(loss, shape);
    term.values.assign(values.begin(), values.end());
    if (loss.target == model::Target::kColumn) {
      term.column =
          static_cast<std::size_t>(std::ranges::find(columns, loss.column) - columns.begin());
    }
    const model::Operation operation =
        loss.tells_classes() ? model::Operation(model::ClassCrossentropy{1, shape.elements(), 1.0})
                             : model::Operation(model::MeanLoss{shape.elements(), loss.kind, 1.0});
    ASSIGN_OR_RETURN(term.kernel, backend.make_kernel(operation));
  }
  return meter;
}

Result<std::optional<OutputQuality>> OutputMeter::measure(std::span<const float> weights,
                                                          std::span<const float> moving,
                                                          Dataset& dataset, std::uint64_t events,
                                                          const std::function<bool()>& going_on) {
  OutputQuality quality;
  quality.events = std::min(events, dataset.size());
  model::Bindings bindings;
  bindings.weights = weights.data();
  bindings.moving = moving.data();
  model::Workspace workspace(*program_);
  std::vector<Sums> sums(terms_.size());
  constexpr auto kSome = static_cast<std::uint64_t>(kMeasuredAtOnce);
  for (std::uint64_t first = 0; first < quality.events; first += kSome) {
    if (going_on && !going_on()) return std::optional<OutputQuality>();
    std::vector<std::uint64_t> ids(std::min(kSome, quality.events - first));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = (first + i) * dataset.size() / quality.events;
    }
    Batch batch;
    RETURN_IF_ERROR(dataset.read(ids, batch));
    write_inputs(batch, workspace);
    program_->run(model::Pass::kForwardInference, bindings, workspace);
    add(batch, workspace, sums);
  }
  const auto all = static_cast<double>(quality.events);
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const model::LossTerm& loss = *terms_[i].loss;
    TermQuality& term = quality.terms.emplace_back();
    term.output = loss.output;
    term.loss = sums[i].loss / all;
    quality.loss += loss.weight * term.loss;
    if (loss.tells_classes() || loss.tells_probability()) {
      term.accuracy = static_cast<double>(sums[i].right) / all;
      term.error = static_cast<double>(quality.events - sums[i].right) / all;
    }
    term.area = area_of(sums[i].low, sums[i].high);
  }
  return std::optional(std::move(quality));
}

// A batch is computed whole; what stands behind the last event is not looked at.
void OutputMeter::write_inputs(const Batch& batch, model::Workspace& workspace) const {
  std::ranges::copy(batch.images.as<float>(), program_->input<float>(workspace).begin());
  if (program_->network().conditions.empty()) return;
  std::vector<const float*> values;
  for (const std::string& condition : program_->network().conditions) {
    const auto column = [&](const std::string& name) {
      const auto at = std::ranges::find(columns_, name) - columns_.begin();
      return batch.column(static_cast<std::size_t>(at));
    };
    values.push_back(model::numbers_of(condition, batch.energies(), batch.angles(), column).data());
  }
  model::write_conditions(values, batch.events, program_->conditions<float>(workspace).data());
}

// In the order of the events, so that the sums have the same bits everywhere.
void OutputMeter::add(const Batch& batch, model::Workspace& workspace,
                      std::vector<Sums>& sums) const {
  std::vector<float> gradient;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const Term& term = terms_[i];
    const auto outputs = program_->output<float>(workspace, term.output);
    gradient.resize(term.size);
    for (std::size_t event = 0; event < batch.events; ++event) {
      const auto own = outputs.subspan(event * term.size, term.size);
      float target = target_of(term, batch, event);
      float loss = 0.0F;
      void* const operands[] = {const_cast<float*>(own.data()), &target, &loss, gradient.data()};
      term.kernel->run(operands, {}, nullptr);
      sums[i].loss += static_cast<double>(loss);
      judge(term, own, target, sums[i]);
    }
  }
}

// As the network is taught it: the number of a class where there are classes.
float OutputMeter::target_of(const Term& term, const Batch& batch, std::size_t event) {
  switch (term.loss->target) {
    case model::Target::kEnergy:
      return batch.energies()[event];
    case model::Target::kAngle:
      return batch.angles()[event];
    case model::Target::kEcal:
      return batch.ecals()[event];
    case model::Target::kColumn:
      break;
    case model::Target::kLabel:
    case model::Target::kBins:
    case model::Target::kVelocity:
      CHECK(false, "a target of another task");
  }
  return model::target_of_column(term.values, batch.column(*term.column)[event]);
}

void OutputMeter::judge(const Term& term, std::span<const float> outputs, float target,
                        Sums& sums) {
  if (term.loss->tells_classes()) {
    const auto likeliest = std::ranges::max_element(outputs) - outputs.begin();
    sums.right += static_cast<float>(likeliest) == target ? 1 : 0;
    if (outputs.size() == 2) {
      (target > 0.5F ? sums.high : sums.low).push_back(outputs[1] - outputs[0]);
    }
  } else if (term.loss->tells_probability()) {
    const float middle = term.loss->kind == LossKind::kBinaryCrossentropy ? 0.5F : 0.0F;
    sums.right += (outputs[0] > middle) == (target > 0.5F) ? 1 : 0;
    (target > 0.5F ? sums.high : sums.low).push_back(outputs[0]);
  }
}

}  // namespace troupe::pipeline
