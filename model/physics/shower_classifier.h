#pragma once

// Whether a network can learn to tell generated showers from the data. It is a network of the
// topology language with two hidden layers, trained by model/supervised.h on what CaloChallenge
// calls high-level features (evaluate.py, cls-high): the primary's energy, every observable, the
// energy of each layer, and the numbers of cells above 1e-6, 1e-5 ... 1 GeV.
//
// Each of two networks learns from one half of both samples and is asked about the other, so that
// every shower is judged by a network that has not seen it. Showers of both samples that are of one
// rank in energy are in one half.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/backend.h"
#include "model/physics/paired_values.h"
#include "model/physics/shower_sample.h"
#include "runtime/base/thread_team.h"

namespace troupe::model {

// The networks' outputs: near 1 for what looks generated.
class ClassifierOutputs {
 public:
  static constexpr std::uint8_t kHalves = 2;

  // For two samples with so many showers; nothing is known of any yet.
  ClassifierOutputs(std::size_t data, std::size_t generated);

  // The area under the curve of each network, mean over the two, where each shower counts so often
  // (roc.h). About 0.5 for equal samples. Nothing where a half is empty. Pure; any thread.
  std::optional<double> area(Times data, Times generated) const;

 private:
  friend class ClassifierTrial;
  static constexpr std::uint8_t kUnknown = kHalves;
  struct Side {
    std::vector<float> outputs;
    std::vector<std::uint8_t> halves;  // of each shower
  };
  Side data_, generated_;
};

struct ClassifiedSamples {
  ClassifierOutputs outputs;
  // Standard deviation of the area for samples of these sizes that are equal: by what networks find
  // in halves of the data, and not below what ranks drawn at random have. It comes from three
  // divisions, so that less than 95 % of equal samples are within 1.96 times of it where networks
  // find more than chance. Nothing where the data are too few to be halved.
  std::optional<double> deviation;
};

// A feature of each shower behind the other, `feature_count` of one; all 0 for one that is not
// usable.
std::size_t classifier_feature_count(const StatisticsOptions& options);
std::vector<float> classifier_features(const ShowerSample& sample);

// A pure function of the samples and the seed; the team shares the trainings out. Both samples with
// the same options, CHECKed. `with_deviation`: whether networks learn from halves of the data too.
// The backend computes on the host.
ClassifiedSamples classify(const ShowerSample& data, const ShowerSample& generated,
                           std::uint64_t seed, const Backend& backend, runtime::ThreadTeam& team,
                           bool with_deviation = true);

}  // namespace troupe::model
