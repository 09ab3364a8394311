#include "pipeline/data/image_judge.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/math.h"

namespace troupe::pipeline {
namespace {

using runtime::Error;
using runtime::ErrorKind;
using runtime::Result;

constexpr std::int64_t kClassifiedAtOnce = 16;
constexpr std::size_t kImagesAtOnce = 256;

Error no_judge(const std::string& why) {
  return {ErrorKind::kUsage, "is no judge of images: " + why};
}

bool has_weights(const model::LayerKind& kind) {
  return std::holds_alternative<model::Dense>(kind) ||
         std::holds_alternative<model::Convolution>(kind) ||
         std::holds_alternative<model::TransposedConvolution>(kind);
}

// The index of the layer whose output tells the classes by its weights; -1: none has some.
int telling_layer(const model::NetworkShapes& shapes, const model::NetworkDescription& network,
                  const std::string& output) {
  const auto named = std::ranges::find(network.layers, output, &model::Layer::name);
  int layer = static_cast<int>(named - network.layers.begin());
  while (layer >= 0 && !has_weights(network.layers[static_cast<std::size_t>(layer)].kind)) {
    layer = shapes.inputs[static_cast<std::size_t>(layer)];
  }
  return std::max(layer, -1);
}

}  // namespace

Result<std::unique_ptr<ImageJudge>> ImageJudge::create(const model::GanDescription& model,
                                                       const TrainedValues& network) {
  if (model.task != model::Task::kSupervised) {
    return no_judge(fmt::format("its task is {}; a judge is a classifier, whose task is supervised",
                                model::task_name(model.task)));
  }
  const auto term = std::ranges::find_if(model.losses, &model::LossTerm::tells_classes);
  if (term == model.losses.end()) {
    return no_judge("none of its losses is a cross_entropy, so that it tells no classes");
  }
  model::NetworkDescription description = model.discriminator;
  if (!description.conditions.empty()) {
    return no_judge(fmt::format("it reads {} besides the image, which generated ones do not have",
                                fmt::join(description.conditions, ", ")));
  }
  const model::NetworkShapes shapes = model::infer_shapes(description);
  CHECK(shapes.problems.empty(), "a trained network has none");
  const int telling = telling_layer(shapes, description, term->output);
  const int hidden = telling < 0 ? -1 : shapes.inputs[static_cast<std::size_t>(telling)];
  if (hidden < 0) return no_judge("it has no hidden layer");
  const auto at = static_cast<std::size_t>(hidden);
  if (shapes.layers[at].elements() > kMostFeatures) {
    return no_judge(fmt::format("its last hidden layer, {}, has {} values; at most {} are compared",
                                description.layers[at].name, shapes.layers[at].elements(),
                                kMostFeatures));
  }
  // Layers that no output needs are refused, so that it keeps all of its outputs.
  const std::string features = description.layers[at].name;
  if (description.outputs.empty()) description.outputs = {description.layers.back().name};
  if (std::ranges::find(description.outputs, features) == description.outputs.end()) {
    description.outputs.push_back(features);
  }
  ASSIGN_OR_RETURN(auto backend, model::make_portable_backend());
  std::unique_ptr<ImageJudge> judge(new ImageJudge(std::move(backend)));
  model::ProgramOptions options;
  options.batch = kClassifiedAtOnce;
  options.network_number = 1;
  options.forward_training = options.backward_parameters = options.backward_input = false;
  ASSIGN_OR_RETURN(judge->program_,
                   model::Program::compile(description, *judge->backend_, options));
  judge->workspace_.emplace(*judge->program_);
  judge->weights_.assign(network.weights.begin(), network.weights.end());
  judge->moving_.assign(network.moving.begin(), network.moving.end());
  judge->class_output_ = judge->program_->find_output(term->output);
  judge->feature_output_ = judge->program_->find_output(features);
  const auto size = [&](int output) {
    return static_cast<std::size_t>(judge->program_->output_shape(output).elements());
  };
  judge->classes_ = size(judge->class_output_);
  judge->features_ = size(judge->feature_output_);
  return judge;
}

model::ClassifiedImages ImageJudge::none() const { return {classes_, {features_, {}}, {}, {}}; }

// Outputs are scores: their softmax are the probabilities.
void ImageJudge::add(std::span<const float> images, model::ClassifiedImages& into) {
  const auto cells = static_cast<std::size_t>(image_shape().elements());
  CHECK(images.size() % cells == 0, "whole images");
  backend_->prepare_thread();
  model::Bindings bindings;
  bindings.weights = weights_.data();
  bindings.moving = moving_.data();
  const std::size_t all = images.size() / cells;
  constexpr auto kSome = static_cast<std::size_t>(kClassifiedAtOnce);
  for (std::size_t first = 0; first < all; first += kSome) {
    const std::size_t some = std::min(kSome, all - first);
    // A batch is computed whole; the rest behind the last image is not taken.
    std::ranges::copy(images.subspan(first * cells, some * cells),
                      program_->input<float>(*workspace_).begin());
    program_->run(model::Pass::kForwardInference, bindings, *workspace_);
    const auto scores = program_->output<float>(*workspace_, class_output_);
    const auto features = program_->output<float>(*workspace_, feature_output_);
    for (std::size_t i = 0; i < some; ++i) {
      const auto own = scores.subspan(i * classes_, classes_);
      const auto likeliest = std::ranges::max_element(own);
      double sum = 0.0;
      for (const float score : own) sum += runtime::math::exp(double{score} - double{*likeliest});
      into.named.push_back(static_cast<std::uint32_t>(likeliest - own.begin()));
      into.confidence.push_back(1.0 / sum);
    }
    const auto taken = features.first(some * features_);
    into.features.values.insert(into.features.values.end(), taken.begin(), taken.end());
  }
}

Result<std::optional<JudgedData>> judge_dataset(ImageJudge& judge, Dataset& dataset,
                                                std::uint64_t events,
                                                const model::LatentDescription& latent,
                                                const GoingOn& going_on) {
  const std::uint64_t all = std::min(events, dataset.size());
  const auto cells = static_cast<std::size_t>(judge.image_shape().elements());
  JudgedData data{judge.none(), {}, {}, {}};
  data.columns.resize(model::columns_of(latent).size());
  for (std::uint64_t first = 0; first < all; first += kImagesAtOnce) {
    if (going_on && !going_on()) return std::optional<JudgedData>();
    std::vector<std::uint64_t> ids(std::min<std::uint64_t>(kImagesAtOnce, all - first));
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = (first + i) * dataset.size() / all;
    Batch batch;
    RETURN_IF_ERROR(dataset.read(ids, batch));
    const auto images = batch.images.as<float>();
    CHECK(images.size() >= ids.size() * cells, "images of the judge's shape");
    judge.add(images.first(ids.size() * cells), data.images);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      data.energies.push_back(batch.energies()[i]);
      if (model::uses_angle(latent)) data.angles.push_back(batch.angles()[i]);
      for (std::size_t k = 0; k < data.columns.size(); ++k) {
        data.columns[k].push_back(batch.column(k)[i]);
      }
    }
  }
  return std::optional(std::move(data));
}

std::optional<model::ClassifiedImages> judge_generated(ImageJudge& judge, ShowerMaker& maker,
                                                       const TrainedValues& generator,
                                                       const JudgedData& data, std::uint64_t seed,
                                                       const GoingOn& going_on) {
  const auto cells = static_cast<std::size_t>(maker.cells());
  const std::size_t all = data.energies.size();
  model::ClassifiedImages found = judge.none();
  std::vector<float> images(std::min(kImagesAtOnce, all) * cells);
  GenerationRequest request{data.energies, data.angles};
  request.columns.assign(data.columns.begin(), data.columns.end());
  request.seed = seed;
  for (std::size_t first = 0; first < all; first += kImagesAtOnce) {
    const std::size_t count = std::min(kImagesAtOnce, all - first);
    const std::span<float> made(images.data(), count * cells);
    const auto asked = [&](std::size_t) { return !going_on || going_on(); };
    if (maker.make(generator.weights, generator.moving, part_of(request, first, count), made,
                   asked) < count) {
      return {};
    }
    judge.add(made, found);
  }
  return found;
}

}  // namespace troupe::pipeline
