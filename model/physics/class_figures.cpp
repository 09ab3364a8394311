#include "model/physics/class_figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "model/physics/replicas.h"
#include "runtime/base/error.h"
#include "runtime/base/random.h"

namespace troupe::model {
namespace {

using Draw = std::vector<std::uint32_t>;  // how often each image counts

constexpr double kInPercent = 100.0;

// The slots of the streams of numbers: which sample is drawn, and what for.
enum ImageUse : std::uint8_t { kData, kGenerated, kFirstFloor, kSecondFloor };

Draw draw_images(std::size_t all, std::size_t size, const runtime::RandomPosition& position) {
  Draw times(all);
  for (std::size_t i = 0; i < size; ++i) {
    const double u = runtime::random_uniform(position, static_cast<std::uint32_t>(i));
    ++times[std::min(static_cast<std::size_t>(u * static_cast<double>(all)), all - 1)];
  }
  return times;
}

double mean_confidence(const ClassifiedImages& images, Times times) {
  double sum = 0.0, count = 0.0;
  for (std::size_t i = 0; i < images.count(); ++i) {
    sum += times[i] * images.confidence[i];
    count += times[i];
  }
  return kInPercent * sum / count;
}

std::vector<double> shares(const ClassifiedImages& images, Times times) {
  std::vector<double> found(images.classes);
  double count = 0.0;
  for (std::size_t i = 0; i < images.count(); ++i) {
    found[images.named[i]] += times[i];
    count += times[i];
  }
  for (double& share : found) share /= count;
  return found;
}

double share_difference(const ClassifiedImages& data, Times of_data,
                        const ClassifiedImages& generated, Times of_generated) {
  const auto a = shares(data, of_data), b = shares(generated, of_generated);
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return kInPercent * sum / 2.0;
}

// In the order of class_figure_list().
Replicas::Values values_of_images(const ClassifiedImages& data, Times of_data,
                                  const ClassifiedImages& generated, Times of_generated) {
  return {frechet_distance(data.features, of_data, generated.features, of_generated),
          mean_confidence(generated, of_generated),
          share_difference(data, of_data, generated, of_generated)};
}

bool has_numbers(const ClassifiedImages& images) {
  const auto is_number = [](double value) { return std::isfinite(value); };
  return images.count() >= 2 && std::ranges::all_of(images.confidence, is_number) &&
         std::ranges::all_of(images.features.values, is_number);
}

}  // namespace

std::vector<Figure> class_figure_list() {
  return {{kClassFrechet,
           "Frechet distance of the judge's features",
           "",
           "Heusel et al., arXiv:1706.08500, with the judge's last hidden layer",
           0.0,
           {}},
          {"judge_confidence",
           "the judge's mean confidence",
           "%",
           "mean probability of the likeliest class",
           100.0,
           {}},
          {"judge_classes",
           "difference of the shares of classes",
           "%",
           "total variation of the classes that the judge names",
           0.0,
           {}}};
}

std::vector<std::string> class_figure_words() {
  std::vector<std::string> words;
  for (const Figure& figure : class_figure_list()) words.push_back(figure.name);
  return words;
}

bool is_class_figure(std::string_view name) {
  return find_figure(class_figure_list(), name) != nullptr;
}

std::string class_figure_meant(std::string_view word) {
  if (word == "merit") return kClassFrechet;
  return is_class_figure(word) ? std::string(word) : "";
}

std::vector<Figure> compute_class_figures(const ClassifiedImages& data,
                                          const ClassifiedImages& generated,
                                          const ClassFigureOptions& options,
                                          runtime::ThreadTeam& team) {
  CHECK(data.classes == generated.classes && data.features.size == generated.features.size,
        "one classifier judges both");
  std::vector<Figure> figures = class_figure_list();
  if (!has_numbers(data) || !has_numbers(generated)) return figures;
  const Draw all_data(data.count(), 1), all_generated(generated.count(), 1);
  const auto values = values_of_images(data, all_data, generated, all_generated);
  for (std::size_t i = 0; i < figures.size(); ++i) figures[i].value = values[i];
  figures[1].ideal = mean_confidence(data, all_data);
  if (options.replicas == 0) return figures;

  const auto replicas = static_cast<std::size_t>(options.replicas);
  const auto draw = [&](std::size_t all, std::size_t size, std::uint32_t number, ImageUse use) {
    return draw_images(all, size, {options.seed, number, 0, use, 0});
  };
  const std::size_t of_data = data.count(), of_generated = generated.count();
  Replicas drawn(figures.size(), replicas), equal(figures.size(), replicas);
  const bool finished = drawn.run(team, options.going_on, 0.0, [&](std::uint32_t number) {
    return values_of_images(data, draw(of_data, of_data, number, kData), generated,
                            draw(of_generated, of_generated, number, kGenerated));
  }) && equal.run(team, options.going_on, 0.5, [&](std::uint32_t number) {
    return values_of_images(data, draw(of_data, of_data, number, kFirstFloor), data,
                            draw(of_data, of_generated, number, kSecondFloor));
  });
  if (!finished) return {};
  for (std::size_t i = 0; i < figures.size(); ++i) {
    figures[i].uncertainty = deviation_of(drawn.of(i));
    std::vector<double> distances = equal.of(i);
    for (double& distance : distances) distance = std::abs(distance - figures[i].ideal);
    set_floor(figures[i], std::move(distances));
  }
  return figures;
}

}  // namespace troupe::model
