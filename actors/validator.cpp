#include "actors/validator.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "pipeline/steps/training_state.h"

namespace troupe::actors {
namespace {

using runtime::Context;
using runtime::Message;
using runtime::Result;

constexpr std::uint32_t kReadAtOnce = 64;
// The unit of energies in the data.
constexpr double kGevPerUnit = 100.0;

}  // namespace

Validator::Validator(ValidatorOptions options, TrainingContext training, pipeline::Dataset& data)
    : options_(options), training_(training), data_(data) {}

void Validator::start(Context& context) {
  on<Snapshot>(&Validator::receive_snapshot);
  on<LastState>(&Validator::receive_last_state);
  training_.backend.prepare_thread();
  metrics_ = context.out("metrics");
  samples_.start(context, "metrics");
  team_ = std::make_unique<runtime::ThreadTeam>(1);
  auto maker =
      pipeline::ShowerMaker::create(training_.gan.description(), training_.backend, *team_);
  if (!maker.ok()) {
    context.fail(maker.error());
    return;
  }
  maker_ = std::move(maker).value();
  if (const auto measured = measure_data(); !measured.ok()) context.fail(measured.error());
}

void Validator::receive_snapshot(Context& context, const Snapshot& snapshot, Message& message) {
  ++snapshots_[std::string(message.sender_name())];
  validate(context, snapshot.state);
  finish_if_complete(context);
}

void Validator::receive_last_state(Context& context, const LastState& last) {
  last_ = last;
  finish_if_complete(context);
}

void Validator::finish_if_complete(Context& context) {
  if (!last_ || snapshots_[last_->leader] < last_->snapshots) return;
  validate(context, last_->state);
  last_.reset();
  context.send_control("coordinator", Message::of(LastStateDone{}));
}

std::string Validator::waiting_for() const {
  if (!last_) return "a snapshot";
  const auto here = snapshots_.find(last_->leader);
  return fmt::format("the snapshots before the last state: {} of {} are here",
                     here == snapshots_.end() ? 0 : here->second, last_->snapshots);
}

// Reads the test events and measures them. The generator gets the same conditions.
Result<void> Validator::measure_data() {
  const auto events = static_cast<std::size_t>(std::min(options_.events, data_.size()));
  const bool angle = model::uses_angle(training_.gan.description().latent);
  const auto cells = static_cast<std::size_t>(maker_->cells());
  model::StatisticsOptions statistics;
  statistics.space = maker_->shape().space;
  statistics.angle = angle;
  data_sample_.emplace(statistics);
  // Energies are known without reading images. So the events to show are chosen first, and of the
  // images only their brightest cells are kept.
  std::vector<float> energies;
  for (std::size_t i = 0; i < events; ++i) energies.push_back(data_.energy(i));
  for (const std::size_t event : model::events_over_energies(energies)) shown_[event] = {};
  std::vector<float> gev(cells);
  for (std::size_t first = 0; first < events; first += kReadAtOnce) {
    std::vector<std::uint64_t> ids(std::min<std::size_t>(kReadAtOnce, events - first));
    std::iota(ids.begin(), ids.end(), first);
    pipeline::Batch batch;
    RETURN_IF_ERROR(data_.read(ids, batch));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      model::to_gev(batch.images.as<float>().subspan(i * cells, cells), options_.units, gev);
      const double energy = kGevPerUnit * batch.energies()[i];
      const auto& found = data_sample_->add(gev, energy);
      energies_.push_back(batch.energies()[i]);
      if (const auto shown = shown_.find(first + i); shown != shown_.end()) {
        shown->second = model::brightest_cells(gev);
      }
      if (!angle) continue;
      angles_.push_back(batch.angles()[i]);
      measured_angles_.push_back(found.angle_rad);
    }
  }
  data_statistics_ = data_sample_->statistics();
  images_.resize(events * cells);
  return {};
}

// Nothing when the run is stopped meanwhile.
std::optional<model::ShowerSample> Validator::measure(Context& context,
                                                      const pipeline::NetworkState& generator) {
  pipeline::GenerationRequest request;
  request.energies = energies_;
  request.angles = angles_;
  request.seed = training_.options.seed;
  const std::size_t made =
      maker_->make(generator.weights, generator.moving, request, images_, [&](std::size_t) {
        context.post_progress();
        return !context.stopping();
      });
  if (made < energies_.size()) return std::nullopt;
  model::ShowerSample measured(data_sample_->options());
  const auto cells = static_cast<std::size_t>(maker_->cells());
  for (std::size_t i = 0; i < energies_.size(); ++i) {
    const std::span<float> image{images_.data() + i * cells, cells};
    model::to_gev(image, options_.units, image);
    // The reference is the angle measured on the data event in the same way, because a measured
    // angle differs from the true one where layers are not as deep as cells are wide.
    std::optional<double> reference;
    if (!measured_angles_.empty()) reference = measured_angles_[i];
    measured.add(image, kGevPerUnit * energies_[i], reference);
  }
  return measured;
}

// The rows are made with the first validation, so that training does not wait for them to begin.
void Validator::make_reference_rows(Context& context) {
  if (!reference_rows_.empty()) return;
  const pipeline::TrainingState untrained =
      pipeline::initial_state(training_.gan, training_.options, "", {});
  const auto measured = measure(context, untrained.generator);
  if (!measured) return;
  reference_rows_.push_back(model::data_row("data", *data_statistics_));
  reference_rows_.push_back(
      model::generated_row("untrained", *data_statistics_, measured->statistics()));
}

void Validator::tell_showers(Context& context, std::uint64_t step,
                             const model::ReportedSample& generated) {
  const auto cells = static_cast<std::size_t>(maker_->cells());
  std::vector<model::ShowerPair> events;
  for (const auto& [event, data] : shown_) {
    model::ShowerPair& pair = events.emplace_back();
    pair.energy_gev = kGevPerUnit * energies_[event];
    if (!angles_.empty()) pair.angle_rad = angles_[event];
    pair.data = data;
    pair.generated =
        model::brightest_cells(std::span<const float>(images_).subspan(event * cells, cells));
  }
  std::ranges::sort(events, {}, &model::ShowerPair::energy_gev);
  ShowersMetrics body{
      step, model::report_json(step, {*data_sample_, *data_statistics_}, generated, events)};
  context.send(metrics_, Message::of(std::move(body)));
}

void Validator::validate(Context& context, const StatePointer& state) {
  const std::uint64_t step = state->step(training_.options.schedule.size());
  if (validated_step_ == step) return;
  make_reference_rows(context);
  const runtime::TimePoint start = context.now();
  const auto measured = measure(context, state->generator);
  if (!measured || reference_rows_.empty()) return;  // the run is stopping
  std::vector<model::TableRow> rows = reference_rows_;
  const model::ShowerStatistics statistics = measured->statistics();
  rows.push_back(model::generated_row("generated", *data_statistics_, statistics));
  validated_step_ = step;

  ValidationResult result;
  result.state = state;
  const auto& merit = rows.back().comparison->merit;
  result.figure_of_merit = merit ? merit->total : std::numeric_limits<double>::infinity();
  result.table = model::table_text(rows);
  result.json = model::table_json(rows);
  if (metrics_.valid() && options_.told_step != step) {
    // Where a run was resumed, a state whose validation has a line is not told again.
    tell_showers(context, step, {*measured, statistics});
    telemetry::ValidationFacts facts{result.json};
    context.send(metrics_, Message::of(EventMetrics{{0.0, step, std::move(facts)}}));
    samples_.add(context, "seconds", std::chrono::duration<double>(context.now() - start).count());
    samples_.tell_all(context);
  }
  context.send_control("coordinator", Message::of(std::move(result)));
}

}  // namespace troupe::actors
