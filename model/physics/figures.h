#pragma once

// All figures of a generated sample against data, each with its uncertainty and its floor.
//
// Both come from samples drawn again (bootstrap, Efron 1979), by a seed. The uncertainty is the
// figure's spread over draws from the two samples. The floor is what the figure is for equal
// samples: as good as a generator can be found to be with so many showers. It is found
//
// - from pairs of draws from the data, for most figures. Those of the Frechet distance for samples
//   without end are taken relative to their mean.
// - for separations, after showers of the two samples changed places at random (permutation), those
//   of one rank in energy together where the energies are equal. Draws from one sample would never
//   fill a bin that it leaves empty.
// - for the area of a classifier, by model/physics/shower_classifier.h. An area without a floor is
//   left out.
//
// Where the generated showers have the energies of the data, as generators that are asked for them
// do, each shower is drawn from the kStratum that are nearest to it in energy, so that energies are
// not what differs. The variance that this leaves out is added again as kStratum / (kStratum - 1).

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/backend.h"
#include "model/physics/comparison.h"
#include "model/physics/figure.h"
#include "model/physics/shower_sample.h"
#include "runtime/base/thread_team.h"

namespace troupe::model {

struct FigureOptions {
  int replicas = 200;  // draws for uncertainties, and as many for floors; at least 2
  std::uint64_t seed = 1;
  // Trains networks to tell the samples apart; computes on the host. Null: no area is known.
  const Backend* classifier = nullptr;
  // Told the share that is done, between draws; false ends the work, with no figures.
  std::function<bool(double share)> going_on{};
};

inline constexpr std::size_t kStratum = 20;

// Whether both have the same energies, in whatever order.
bool have_equal_energies(const ShowerSample& data, const ShowerSample& generated);

// The mean of comparisons of two samples drawn from the data, each as large as they are: what a
// generator's is to be set beside. For generators that are asked for the energies of the data.
Comparison compare_with_itself(const ShowerSample& data, int replicas = 40, std::uint64_t seed = 1);

// Words for a figure: the names of figure_list(true), and "sampling_fraction", by which 3DGAN's
// SelectEpoch.py calls `response_energy`. Those that runs choose by most come first.
std::vector<std::string> figure_words();
// The name of the figure; "": none has that word.
std::string figure_meant(std::string_view word);

// Whether the figure of that name is made of sums over the samples alone, which costs next to
// nothing and needs no sketches.
bool follows_from_sums(std::string_view name);

// One figure alone, without uncertainty and floor, by its name (CHECKed).
Figure compute_figure(std::string_view name, const ShowerSample& data,
                      const ShowerSample& generated, const FigureOptions& options,
                      runtime::ThreadTeam& team);

// In the order of figure_list(). Both with the same options (CHECKed). A pure function; the team
// shares the draws out.
std::vector<Figure> compute_figures(const ShowerSample& data, const ShowerSample& generated,
                                    const FigureOptions& options, runtime::ThreadTeam& team);

}  // namespace troupe::model
