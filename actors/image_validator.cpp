#include "actors/image_validator.h"

#include <limits>
#include <utility>

#include "model/physics/class_table.h"

namespace troupe::actors {
namespace {

constexpr int kFloorDraws = 20;

double distance_by(const std::string& name, const std::vector<model::Figure>& figures) {
  const model::Figure* figure = model::find_figure(figures, name);
  return figure != nullptr && figure->value ? figure->distance()
                                            : std::numeric_limits<double>::infinity();
}

}  // namespace

ImageValidator::ImageValidator(ValidatorOptions options, TrainingContext training,
                               pipeline::Dataset& data, pipeline::ImageJudge& judge)
    : StateJudge(std::move(options), training),
      data_(data),
      judge_(judge),
      chosen_(model::class_figure_meant(options_.section.best)),
      stopping_(training.options.stop ? training.options.stop->figure : "") {}

void ImageValidator::start(Context& context) {
  start_judging(context);
  team_ = std::make_unique<runtime::ThreadTeam>(1);
  auto maker =
      pipeline::ShowerMaker::create(training_.gan.description(), training_.backend, *team_);
  if (!maker.ok()) return context.fail(maker.error());
  maker_ = std::move(maker).value();
}

// With the first validation, so that training does not wait for it to begin.
bool ImageValidator::judge_data(Context& context) {
  if (judged_data_) return true;
  const auto going_on = [&context] {
    context.post_progress();
    return !context.stopping();
  };
  auto judged = pipeline::judge_dataset(judge_, data_, options_.events,
                                        training_.gan.description().latent, going_on);
  if (!judged.ok()) {
    context.fail(judged.error());
    return false;
  }
  auto& found = judged.value();
  if (!found) return false;
  const model::ClassFigureOptions options{kFloorDraws, training_.options.seed,
                                          [&going_on](double) { return going_on(); }};
  of_data_ = model::compute_class_figures(found->images, found->images, options, *team_);
  if (of_data_.empty()) return false;
  judged_data_ = std::move(found);
  return true;
}

void ImageValidator::judge(Context& context, const StatePointer& state, std::uint64_t step) {
  const runtime::TimePoint start = context.now();
  if (!judge_data(context)) return;
  const pipeline::NetworkState& generator = state->result();
  const auto made =
      pipeline::judge_generated(judge_, *maker_, {generator.weights, generator.moving},
                                *judged_data_, training_.options.seed, [&context] {
                                  context.post_progress();
                                  return !context.stopping();
                                });
  if (!made) return;  // the run is stopping
  const std::vector<model::Figure> figures =
      model::compute_class_figures(judged_data_->images, *made, {}, *team_);
  ValidationResult result;
  result.state = state;
  result.figure = chosen_;
  result.distance = distance_by(chosen_, figures);
  result.stop_distance = stopping_.empty() ? result.distance : distance_by(stopping_, figures);
  const model::ClassTable table{judged_data_->images.count(), of_data_, figures, chosen_};
  result.table = model::table_text(table);
  result.json = model::table_json(table);
  tell(context, step, std::move(result), start);
}

}  // namespace troupe::actors
