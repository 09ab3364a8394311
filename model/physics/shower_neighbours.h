#pragma once

// Whether a generator repeats the showers of the data, or its own.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "model/physics/paired_values.h"
#include "model/physics/shower_sample.h"

namespace troupe::model {

class ShowerNeighbours {
 public:
  // Both samples with sketches; `same`: they are one, and no shower is its own neighbour.
  ShowerNeighbours(const ShowerSample& data, const ShowerSample& generated, bool same);

  // The share of generated showers that are nearer to one of all showers of the data than half of
  // what all but one in a hundred showers of the data are to another of all; of at most 2,000 of
  // each, evenly over the sample.
  std::optional<double> copies(Times generated) const;
  // Median distance of a generated shower to its nearest of the data / of a shower of the data to
  // its nearest other. Less than 1: the generator stays near the data's showers.
  std::optional<double> nearest(Times data, Times generated) const;
  // The same within the generated showers / within the data. Near 0: it makes one shower again and
  // again.
  std::optional<double> diversity(Times data, Times generated) const;
  // Mean structural similarity of two generated showers - of two showers of the data, over pairs
  // of the first kept images, at a range of kSimilarityRangeGev.
  std::optional<double> similarity(Times data, Times generated) const;

  static constexpr double kSimilarityRangeGev = 1e-2;

 private:
  // Showers by number, and a value of each.
  struct Values {
    std::vector<std::uint32_t> showers;
    std::vector<double> values;
  };
  struct Pairs {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> showers;
    std::vector<double> values;
  };
  static std::optional<double> median(const Values& values, Times times);
  static std::optional<double> mean(const Pairs& pairs, Times times);
  static Values distances(const ShowerSample& from, const std::vector<std::uint32_t>& chosen,
                          const ShowerSample& to, const std::vector<std::uint32_t>& targets,
                          bool same);
  // The distances of `within.showers` to all others of `all`, where `within` has those among
  // themselves.
  static Values nearest_others(Values within, const ShowerSample& sample,
                               const std::vector<std::uint32_t>& all);
  // Distances to any number of targets.
  static Values nearest_of(const ShowerSample& from, const std::vector<std::uint32_t>& chosen,
                           const ShowerSample& to, const std::vector<std::uint32_t>& targets);
  static Pairs similarities(const ShowerSample& sample);

  Values within_data_, within_generated_, across_, to_all_;
  double copy_distance_ = 0.0;
  Pairs alike_data_, alike_generated_;
};

}  // namespace troupe::model
