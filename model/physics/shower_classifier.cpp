#include "model/physics/shower_classifier.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <span>
#include <utility>

#include "model/physics/roc.h"
#include "model/physics/sample_drawer.h"
#include "model/streams.h"
#include "model/supervised.h"
#include "runtime/base/error.h"
#include "runtime/base/math.h"
#include "runtime/base/random.h"

namespace troupe::model {
namespace {

constexpr std::int64_t kUnits = 64;
constexpr std::int64_t kMicroBatch = 32;
constexpr std::uint64_t kEpochs = 30, kFewestUpdates = 150, kMostUpdates = 2000;
constexpr double kRate = 2e-3;
constexpr float kFurthest = 8.0F;  // of a feature from its mean, in standard deviations
constexpr int kDataTrials = 3;     // divisions of the data into halves
constexpr std::size_t kFewestShowers = 8;

constexpr std::size_t kLowestLevel = 7;       // of SampledShower::found.cells_above, 1e-6 GeV
constexpr double kSmallestLayerShare = 1e-6;  // of the primary's energy

NetworkDescription network_for(std::size_t features) {
  constexpr Activation kBent{ActivationKind::kLeakyRelu, 0.1};
  NetworkDescription network;
  network.name = "classifier";
  network.input = Shape::features(static_cast<std::int64_t>(features));
  network.layers = {{"first", Dense{kUnits, true, Initialiser::kHeUniform}, ""},
                    {"first_bent", kBent, ""},
                    {"second", Dense{kUnits, true, Initialiser::kHeUniform}, ""},
                    {"second_bent", kBent, ""},
                    {"generated", Dense{1, true, Initialiser::kGlorotUniform}, ""},
                    {"probability", Activation{ActivationKind::kSigmoid}, ""}};
  return network;
}

float logarithm(double value) {
  return static_cast<float>(runtime::math::log(std::max(value, 1e-30)));
}

void append_features(const SampledShower& shower, bool angle, std::vector<float>& out) {
  out.push_back(logarithm(shower.energy_gev));
  for (const ShowerObservable& observable : shower_observables()) {
    if (!observable.is_known(angle)) continue;
    const bool known = !(observable.of_filled && shower.found.empty());
    out.push_back(known ? static_cast<float>(observable.of(shower)) : 0.0F);
  }
  for (const double layer : shower.found.profile[2]) {
    out.push_back(logarithm(layer / shower.energy_gev + kSmallestLayerShare));
  }
  for (std::size_t level = kLowestLevel; level < kSparsityLevels; ++level) {
    out.push_back(logarithm(1.0 + static_cast<double>(shower.found.cells_above[level])));
  }
}

// The showers to learn from, by their energies, and their features.
struct Learned {
  const std::vector<float>* features;
  std::vector<std::uint32_t> showers;
};

Learned usable(const ShowerSample& sample, const std::vector<float>& features) {
  Learned found{&features, by_energy(sample)};
  std::erase_if(found.showers,
                [&](std::uint32_t shower) { return !sample.showers()[shower].usable(); });
  return found;
}

// Two showers of neighbouring ranks are in different halves.
std::uint8_t half_of(std::size_t rank, std::uint32_t division, std::uint64_t seed) {
  const runtime::RandomPosition position{seed, static_cast<std::uint32_t>(rank / 2), division, 0,
                                         kHalvesStream};
  const bool turned = runtime::random_uniform(position, 0) < 0.5;
  return static_cast<std::uint8_t>((rank % 2 == 0) == turned ? 0 : 1);
}

// Mean and deviation of each feature, so that all are learned from alike.
class Standard {
 public:
  Standard(std::span<const float> inputs, std::size_t size) : size_(size) {
    std::vector<SpreadSum> sums(size);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      sums[i % size].add(static_cast<double>(inputs[i]));
    }
    for (const SpreadSum& sum : sums) {
      mean_.push_back(sum.spread().mean);
      deviation_.push_back(sum.spread().deviation);
    }
  }
  void apply(std::span<float> inputs) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::size_t feature = i % size_;
      const double from_mean = static_cast<double>(inputs[i]) - mean_[feature];
      const bool varies = deviation_[feature] > 1e-9 * (1.0 + std::abs(mean_[feature]));
      inputs[i] = varies ? std::clamp(static_cast<float>(from_mean / deviation_[feature]),
                                      -kFurthest, kFurthest)
                         : 0.0F;
    }
  }

 private:
  std::size_t size_;
  std::vector<double> mean_, deviation_;
};

// That of the area of n and m values that are ranked at random (Mann and Whitney 1947).
double rank_deviation(double n, double m) { return std::sqrt((n + m + 1.0) / (12.0 * n * m)); }

}  // namespace

// Two lists of showers, and the outputs for them.
class ClassifierTrial {
 public:
  ClassifierTrial(Learned data, Learned generated, std::size_t features, std::uint32_t number,
                  std::uint64_t seed, ClassifierOutputs& outputs)
      : sides_{std::move(data), std::move(generated)},
        features_(features),
        seed_(runtime::mix64(seed + number)),
        outputs_(outputs) {
    for (const bool of_generated : {false, true}) {
      const auto& showers = side(of_generated).showers;
      for (std::size_t rank = 0; rank < showers.size(); ++rank) {
        out(of_generated).halves[showers[rank]] = half_of(rank, number, seed);
      }
    }
  }

  // Learns from the other half and asks about this one.
  void run(std::uint8_t half, const Backend& backend) const {
    runtime::ThreadTeam alone(1);
    Examples known = examples([half](std::uint8_t each) { return each != half; });
    Examples asked = examples([half](std::uint8_t each) { return each == half; });
    if (known.targets.empty() || asked.targets.empty()) return;
    const Standard standard(known.inputs, features_);
    standard.apply(known.inputs);
    standard.apply(asked.inputs);
    auto network = SupervisedNetwork::create(network_for(features_), options(known, half), backend);
    CHECK(network.ok(), network.error().message);
    (*network)->train(known, updates(known), alone);
    const std::vector<float> found = (*network)->predict(asked.inputs, alone);
    std::size_t next = 0;
    for (const bool of_generated : {false, true}) {
      for (const std::uint32_t shower : side(of_generated).showers) {
        if (out(of_generated).halves[shower] != half) continue;
        out(of_generated).outputs[shower] = found[next++];
      }
    }
  }

 private:
  const Learned& side(bool of_generated) const { return sides_[of_generated ? 1 : 0]; }
  ClassifierOutputs::Side& out(bool of_generated) const {
    return of_generated ? outputs_.generated_ : outputs_.data_;
  }

  template <class Wanted>
  Examples examples(Wanted wanted) const {
    Examples found;
    for (const bool of_generated : {false, true}) {
      const Learned& from = side(of_generated);
      for (const std::uint32_t shower : from.showers) {
        if (!wanted(out(of_generated).halves[shower])) continue;
        const auto first = from.features->begin() + static_cast<std::ptrdiff_t>(shower * features_);
        found.inputs.insert(found.inputs.end(), first,
                            first + static_cast<std::ptrdiff_t>(features_));
        found.targets.push_back(of_generated ? 1.0F : 0.0F);
      }
    }
    return found;
  }

  static std::uint64_t batch(const Examples& known) {
    return known.targets.size() < 2000 ? 2 * kMicroBatch : 4 * kMicroBatch;
  }
  static std::uint64_t updates(const Examples& known) {
    return std::clamp(kEpochs * known.targets.size() / batch(known), kFewestUpdates, kMostUpdates);
  }
  SupervisedOptions options(const Examples& known, std::uint8_t half) const {
    SupervisedOptions options;
    options.rate.kind = LearningRateKind::kExponential;
    options.rate.rate = kRate;
    options.rate.decay = 0.5;
    options.rate.every.count = std::max<std::uint64_t>(updates(known) / 4, 1);
    options.micro_batch = kMicroBatch;
    options.micro_batches = static_cast<std::uint32_t>(batch(known) / kMicroBatch);
    options.seed = runtime::mix64(seed_ + half);
    return options;
  }

  Learned sides_[2];
  std::size_t features_;
  std::uint64_t seed_;
  ClassifierOutputs& outputs_;
};

namespace {

// The two halves of the data, of neighbouring energies one each.
std::pair<Learned, Learned> divided(const Learned& data, std::uint32_t division,
                                    std::uint64_t seed) {
  std::pair<Learned, Learned> halves{{data.features, {}}, {data.features, {}}};
  for (std::size_t rank = 0; rank < data.showers.size(); ++rank) {
    const bool first = half_of(rank, division, ~seed) == 0;
    (first ? halves.first : halves.second).showers.push_back(data.showers[rank]);
  }
  return halves;
}

std::vector<std::uint32_t> marked(const Learned& side, std::size_t all) {
  std::vector<std::uint32_t> times(all);
  for (const std::uint32_t shower : side.showers) times[shower] = 1;
  return times;
}

}  // namespace

ClassifierOutputs::ClassifierOutputs(std::size_t data, std::size_t generated)
    : data_{std::vector<float>(data), std::vector<std::uint8_t>(data, kUnknown)},
      generated_{std::vector<float>(generated), std::vector<std::uint8_t>(generated, kUnknown)} {}

std::optional<double> ClassifierOutputs::area(Times data, Times generated) const {
  double sum = 0.0;
  for (std::uint8_t half = 0; half < kHalves; ++half) {
    const auto inside = [half](const Side& side, Times times) {
      std::vector<std::uint32_t> found(times.begin(), times.end());
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (side.halves[i] != half) found[i] = 0;
      }
      return found;
    };
    const auto area = area_under_curve(data_.outputs, inside(data_, data), generated_.outputs,
                                       inside(generated_, generated));
    if (!area) return std::nullopt;
    sum += *area;
  }
  return sum / kHalves;
}

std::size_t classifier_feature_count(const StatisticsOptions& options) {
  std::size_t count =
      1 + static_cast<std::size_t>(options.space[2]) + kSparsityLevels - kLowestLevel;
  for (const ShowerObservable& observable : shower_observables()) {
    if (observable.is_known(options.angle)) ++count;
  }
  return count;
}

std::vector<float> classifier_features(const ShowerSample& sample) {
  const std::size_t size = classifier_feature_count(sample.options());
  std::vector<float> features;
  features.reserve(size * sample.showers().size());
  for (const SampledShower& shower : sample.showers()) {
    if (shower.usable()) {
      append_features(shower, sample.options().angle, features);
    } else {
      features.resize(features.size() + size);
    }
  }
  return features;
}

ClassifiedSamples classify(const ShowerSample& data, const ShowerSample& generated,
                           std::uint64_t seed, const Backend& backend, runtime::ThreadTeam& team,
                           bool with_deviation) {
  CHECK(data.options() == generated.options(),
        "samples measured with different options do not compare");
  const std::size_t size = classifier_feature_count(data.options());
  const std::vector<float> of_data = classifier_features(data);
  const std::vector<float> of_generated = classifier_features(generated);
  const Learned known = usable(data, of_data), made = usable(generated, of_generated);
  const std::size_t all = data.showers().size();

  ClassifiedSamples found{ClassifierOutputs(all, generated.showers().size()), {}};
  std::deque<ClassifierOutputs> of_halves;
  std::vector<ClassifierTrial> trials;
  trials.emplace_back(known, made, size, 0, seed, found.outputs);
  std::vector<std::pair<Learned, Learned>> halves;
  if (with_deviation && known.showers.size() >= kFewestShowers && !made.showers.empty()) {
    for (std::uint32_t i = 1; i <= kDataTrials; ++i) {
      halves.push_back(divided(known, i, seed));
      trials.emplace_back(halves.back().first, halves.back().second, size, i, seed,
                          of_halves.emplace_back(all, all));
    }
  }
  team.run(std::ssize(trials) * ClassifierOutputs::kHalves, [&](std::int64_t i, int) {
    trials[static_cast<std::size_t>(i / 2)].run(static_cast<std::uint8_t>(i % 2), backend);
  });
  if (halves.empty()) return found;

  double squares = 0.0;
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const auto& [first, second] = halves[i];
    const double area = of_halves[i].area(marked(first, all), marked(second, all)).value_or(0.5);
    squares += (area - 0.5) * (area - 0.5) / static_cast<double>(halves.size());
  }
  const auto n = static_cast<double>(known.showers.size());
  const auto m = static_cast<double>(made.showers.size());
  const double scale = rank_deviation(n, m) / rank_deviation(n / 2.0, n / 2.0);
  found.deviation = std::max(std::sqrt(squares) * scale, rank_deviation(n, m));
  return found;
}

}  // namespace troupe::model
