#include "actors/validator.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "config/validator_statistics.h"
#include "model/physics/figures.h"
#include "model/physics/sample_comparer.h"
#include "pipeline/steps/training_state.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Message;
using runtime::Result;

// Keeps the brightest cells of the showers that `shown` names.
pipeline::ShowerWatch brightest_into(std::map<std::size_t, model::BrightCells>& shown) {
  return [&shown](std::size_t event, std::span<const float> gev) {
    if (const auto place = shown.find(event); place != shown.end()) {
      place->second = model::brightest_cells(gev);
    }
  };
}

std::string stopping_figure(const pipeline::TrainingOptions& options) {
  return options.stop ? model::figure_meant(options.stop->figure) : "";
}

double distance_of(const model::Figure& figure) {
  return figure.value ? figure.distance() : std::numeric_limits<double>::infinity();
}

}  // namespace

Validator::Validator(ValidatorOptions options, TrainingContext training, pipeline::Dataset& data)
    : StateJudge(std::move(options), training),
      data_(data),
      chosen_(model::figure_meant(options_.section.best)),
      stopping_(stopping_figure(training.options)) {}

bool Validator::needs(const std::function<bool(const std::string&)>& is_one) const {
  return is_one(chosen_) || (!stopping_.empty() && is_one(stopping_));
}

void Validator::start(Context& context) {
  start_judging(context);
  team_ = std::make_unique<runtime::ThreadTeam>(1);
  auto maker =
      pipeline::ShowerMaker::create(training_.gan.description(), training_.backend, *team_);
  if (!maker.ok()) {
    context.fail(maker.error());
    return;
  }
  maker_ = std::move(maker).value();
  if (needs([](const std::string& figure) { return figure == model::kAreaFigure; })) {
    auto backend = model::make_portable_backend();
    if (!backend.ok()) {
      context.fail(backend.error());
      return;
    }
    classifier_ = std::move(backend).value();
  }
  if (options_.section.test_losses) {
    auto losses = pipeline::TestLosses::create(training_.gan.description());
    if (!losses.ok()) {
      context.fail(losses.error());
      return;
    }
    losses_ = std::move(losses).value();
  }
  if (const auto measured = measure_data(); !measured.ok()) context.fail(measured.error());
}

// Reads the test events and measures them. The generator gets the same conditions.
Result<void> Validator::measure_data() {
  const std::uint64_t events = std::min(options_.events, data_.size());
  measuring_.statistics =
      config::statistics_of(options_.section, maker_->shape().space,
                            model::uses_angle(training_.gan.description().latent));
  measuring_.units = options_.units;
  measuring_.columns = model::columns_of(training_.gan.description().latent).size();
  measuring_.sketches =
      needs([](const std::string& figure) { return !model::follows_from_sums(figure); });
  // Energies are known without reading images. So the events to show are chosen first, and of the
  // images only their brightest cells are kept.
  std::vector<float> energies;
  for (std::size_t i = 0; i < events; ++i) energies.push_back(data_.energy(i));
  for (const std::size_t event : model::events_over_energies(energies)) shown_[event] = {};
  ASSIGN_OR_RETURN(measured_data_,
                   pipeline::measure_dataset(data_, measuring_, events, brightest_into(shown_)));
  data_statistics_ = measured_data_->sample.statistics();
  made_ = shown_;
  return {};
}

// Nothing when the run is stopped meanwhile.
std::optional<model::ShowerSample> Validator::measure(Context& context,
                                                      const pipeline::NetworkState& maker,
                                                      const pipeline::MeasuringOptions& options) {
  return pipeline::measure_generated(*maker_, maker.weights, maker.moving, *measured_data_, options,
                                     training_.options.seed, brightest_into(made_),
                                     [&](std::size_t) {
                                       context.post_progress();
                                       return !context.stopping();
                                     });
}

// The rows are made with the first validation, so that training does not wait for them to begin.
void Validator::make_reference_rows(Context& context) {
  if (!reference_rows_.empty()) return;
  const pipeline::TrainingState untrained =
      pipeline::initial_state(training_.gan, training_.options, "", {});
  const auto measured = measure(context, untrained.result(), measuring_);
  if (!measured) return;
  reference_rows_.push_back(model::data_row("data", *data_statistics_,
                                            model::compare_with_itself(measured_data_->sample)));
  reference_rows_.push_back(
      model::generated_row("untrained", *data_statistics_, measured->statistics()));
}

// The images of the data are read anew, since keeping them would take as much memory as they have.
bool Validator::begin_losses(Context& context, const pipeline::NetworkState& discriminator) {
  constexpr std::size_t kReadAtOnce = 64;
  const auto cells = static_cast<std::size_t>(maker_->cells());
  const std::size_t all = measured_data_->energies.size();
  const std::size_t columns = model::columns_of(training_.gan.description()).size();
  losses_->begin(discriminator.weights, discriminator.moving);
  conditions_.clear();
  for (std::size_t first = 0; first < all && !context.stopping(); first += kReadAtOnce) {
    std::vector<std::uint64_t> ids(std::min(kReadAtOnce, all - first));
    std::iota(ids.begin(), ids.end(), first);
    pipeline::Batch batch;
    if (const auto read = data_.read(ids, batch); !read.ok()) {
      context.log().warning(read.error().message + "; losses of the test events are not told");
      return false;
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto image = batch.images.as<float>().subspan(i * cells, cells);
      pipeline::TestConditions& conditions = conditions_.emplace_back();
      conditions.energy = batch.energies()[i];
      conditions.angle = batch.angles()[i];
      conditions.ecal = batch.ecals()[i];
      conditions.bins = losses_->bins_of(image);
      for (std::size_t k = 0; k < columns; ++k) conditions.columns.push_back(batch.column(k)[i]);
      losses_->add(true, image, conditions_.back());
    }
    context.post_progress();
  }
  return !context.stopping();
}

void Validator::tell_losses(Context& context, std::uint64_t step) {
  for (auto& [slot, losses] : losses_->end()) {
    telemetry::TestLossFacts facts{"test_" + model::slot_name(slot), conditions_.size(),
                                   std::move(losses)};
    context.send(metrics_, Message::of(EventMetrics{{0.0, step, std::move(facts)}}));
  }
}

void Validator::tell_showers(Context& context, std::uint64_t step,
                             const model::ReportedSample& generated) {
  std::vector<model::ShowerPair> events;
  for (const auto& [event, data] : shown_) {
    model::ShowerPair& pair = events.emplace_back();
    pair.energy_gev = measured_data_->sample.showers()[event].energy_gev;
    if (measuring_.statistics.angle) pair.angle_rad = measured_data_->angles[event];
    pair.data = data;
    pair.generated = made_.at(event);
  }
  std::ranges::sort(events, {}, &model::ShowerPair::energy_gev);
  ShowersMetrics body{step, model::report_json(step, {measured_data_->sample, *data_statistics_},
                                               generated, events)};
  context.send(metrics_, Message::of(std::move(body)));
}

model::Figure Validator::compute(const std::string& figure, const model::ShowerSample& generated) {
  model::FigureOptions options;
  options.seed = training_.options.seed;
  options.classifier = classifier_.get();
  return model::compute_figure(figure, measured_data_->sample, generated, options, *team_);
}

void Validator::judge(Context& context, const StatePointer& state, std::uint64_t step) {
  make_reference_rows(context);
  const runtime::TimePoint start = context.now();
  // Where a run was resumed, a state whose validation has a line is not told again.
  const bool tells = is_told(step);
  pipeline::MeasuringOptions measuring = measuring_;
  const bool has_losses =
      tells && losses_ != nullptr && begin_losses(context, state->discriminator);
  if (has_losses) {
    measuring.as_made = [this](std::size_t event, auto image, auto columns) {
      losses_->add(false, image, conditions_[event], columns);
    };
  }
  const auto measured = measure(context, state->result(), measuring);
  if (!measured || reference_rows_.empty()) return;  // the run is stopping
  std::vector<model::TableRow> rows = reference_rows_;
  const model::ShowerStatistics statistics = measured->statistics();
  rows.push_back(model::generated_row("generated", *data_statistics_, statistics));
  const model::Figure chosen = compute(chosen_, *measured);
  rows.back().chosen = chosen;

  ValidationResult result;
  result.state = state;
  result.figure = chosen.name;
  result.distance = distance_of(chosen);
  result.stop_distance = stopping_.empty() || stopping_ == chosen_
                             ? result.distance
                             : distance_of(compute(stopping_, *measured));
  result.table = model::table_text(rows);
  result.json = model::table_json(rows);
  if (has_losses) tell_losses(context, step);
  if (tells) tell_showers(context, step, {*measured, statistics});
  tell(context, step, std::move(result), start);
}

}  // namespace troupe::actors
