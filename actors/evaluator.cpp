#include "actors/evaluator.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace troupe::actors {

using runtime::Context;

Evaluator::Evaluator(ValidatorOptions options, TrainingContext training, pipeline::Dataset& data)
    : StateJudge(std::move(options), training), data_(data) {}

void Evaluator::start(Context& context) {
  start_judging(context);
  if (!training_.backend.memory().is_of_host()) {
    auto backend = model::make_portable_backend();
    if (!backend.ok()) return context.fail(backend.error());
    host_ = std::move(backend).value();
    host_->prepare_thread();
  }
  auto meter = pipeline::OutputMeter::create(training_.gan.description(),
                                             host_ ? *host_ : training_.backend);
  if (!meter.ok()) return context.fail(meter.error());
  meter_ = std::move(meter).value();
}

void Evaluator::judge(Context& context, const StatePointer& state, std::uint64_t step) {
  const runtime::TimePoint start = context.now();
  const pipeline::NetworkState& network = state->result();
  const auto found =
      meter_->measure(network.weights, network.moving, data_, options_.events, [&context] {
        context.post_progress();
        return !context.stopping();
      });
  if (!found.ok()) return context.fail(found.error());
  if (!*found) return;  // the run is stopping
  const pipeline::OutputQuality& quality = **found;
  ValidationResult result;
  result.state = state;
  result.figure = pipeline::quality_meant(options_.section.best);
  result.distance = pipeline::quality_distance(quality, result.figure);
  const auto& stop = training_.options.stop;
  result.stop_distance = stop && !stop->figure.empty()
                             ? pipeline::quality_distance(quality, stop->figure)
                             : result.distance;
  if (!std::isfinite(quality.loss)) {
    context.log().warning(
        fmt::format("the loss of test events is NaN or infinite behind step {}; "
                    "it makes no checkpoint the best, and ends no training",
                    step));
  } else {
    warn_of_missing(context, quality, result.figure);
    if (stop) warn_of_missing(context, quality, stop->figure);
  }
  result.table = pipeline::quality_text(quality);
  result.json = pipeline::quality_json(quality, result.figure);
  tell(context, step, std::move(result), start);
}

void Evaluator::warn_of_missing(Context& context, const pipeline::OutputQuality& quality,
                                const std::string& figure) {
  if (figure.empty() || pipeline::quality_of(quality, figure)) return;
  if (!missing_.insert(figure).second) return;
  context.log().warning(fmt::format(
      "the test events have no {}, as all of them are of one class: it makes no checkpoint the "
      "best, and ends no training; give actors.validator more events, or another figure",
      figure));
}

}  // namespace troupe::actors
