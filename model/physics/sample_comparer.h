#pragma once

// All figures of two samples of showers, for any weights of their showers: what the figures are and
// how they are computed. model/physics/figures.h adds their uncertainties and floors.

#include <cstdint>
#include <optional>
#include <vector>

#include "model/physics/feature_distances.h"
#include "model/physics/figure.h"
#include "model/physics/paired_values.h"
#include "model/physics/shower_classifier.h"
#include "model/physics/shower_neighbours.h"
#include "model/physics/shower_sample.h"

namespace troupe::model {

// The names, titles, units, formulas and ideals of all figures, without values, in the order in
// which they are told. `angle`: whether angles were measured.
std::vector<Figure> figure_list(bool angle);

// The name of the area under the curve of a classifier.
inline constexpr const char* kAreaFigure = "auc";

class SampleComparer {
 public:
  // Both with the same options, CHECKed, and outliving this. Neighbours, copies and the similarity
  // of images are known where both have sketches. The same object twice: two samples drawn from
  // one.
  SampleComparer(const ShowerSample& data, const ShowerSample& generated);

  // As many as figure_list() has, in its order, where each shower counts so often. Pure; any
  // thread.
  std::vector<std::optional<double>> values(Times data, Times generated) const;

  // The separations of two samples that showers of the two have been mixed into: as many as
  // figure_list(), nothing for other figures. Pure; any thread.
  std::vector<std::optional<double>> separations_of_turned(Turned data, Turned generated) const;
  // Outputs for the two samples, which outlive this; without them no area is known.
  void take(const ClassifierOutputs& outputs) { classified_ = &outputs; }

  // The features of the Frechet and the kernel distance: every observable, scaled.
  const FeatureTable& data_features() const { return data_features_; }
  const FeatureTable& generated_features() const { return generated_features_; }

 private:
  // Of an observable or a layer: the showers that have it, and their values.
  struct Paired {
    std::vector<std::uint32_t> data, generated;
    std::optional<PairedValues> values;
  };
  template <class Of>
  Paired pair(bool of_filled, Of of) const;
  void make_features();
  std::vector<std::optional<double>> distances(Times data, Times generated) const;
  template <class Separation>
  double mean_of_layers(Separation separation) const;
  double spectrum_separation(Turned data, Turned generated) const;

  const ShowerSample& data_;
  const ShowerSample& generated_;
  bool same_;
  std::vector<Paired> observables_, layers_;
  ShowerNeighbours neighbours_;
  FeatureTable data_features_, generated_features_;
  std::vector<std::uint32_t> kernel_data_, kernel_generated_;  // showers in the kernel
  std::optional<KernelDistance> kernel_;
  const ClassifierOutputs* classified_ = nullptr;
};

}  // namespace troupe::model
