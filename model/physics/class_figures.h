#pragma once

// How far generated images are from real ones by what a trained classifier says of both: whether it
// is as sure what they show, whether they show every class as often, and Frechet's distance of what
// its last hidden layer has of them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/physics/feature_distances.h"
#include "model/physics/figure.h"
#include "runtime/base/thread_team.h"

namespace troupe::model {

// What a classifier says of images, one behind the other.
struct ClassifiedImages {
  std::size_t classes = 0;              // that it knows, at least 2
  FeatureTable features;                // values of its last hidden layer
  std::vector<std::uint32_t> named;     // the likeliest class, below `classes`
  std::vector<double> confidence = {};  // its probability, from 0 to 1; NaN of images with NaN

  std::size_t count() const { return named.size(); }
};

inline constexpr const char* kClassFrechet = "judge_frechet";

// The figures without values:
//   judge_frechet     |m_d - m_g|^2 + Tr(C_d + C_g - 2 (C_d C_g)^(1/2)) with means m and
//   covariances
//                     C (divided by n - 1) of the features of data and generated images: Heusel et
//                     al., arXiv:1706.08500, with the judge in the place of Inception. It grows as
//                     samples get smaller; its floor says how much.
//   judge_confidence  mean probability of the named class, in per cent; ideal is that of the data
//   judge_classes     half the sum over classes of the absolute differences of their shares, in per
//                     cent: 0 for equal shares, 100 where no class is in both
std::vector<Figure> class_figure_list();
// Their names.
std::vector<std::string> class_figure_words();
bool is_class_figure(std::string_view name);
// The name of the figure that a word for the best state means where a classifier judges: "merit",
// which stands where nobody says one, is judge_frechet there. "": none has that word.
std::string class_figure_meant(std::string_view word);

struct ClassFigureOptions {
  int replicas = 0;  // draws for uncertainties, and as many for floors; 0: none are found
  std::uint64_t seed = 1;
  // Told the share that is done, between draws; false ends the work, with no figures.
  std::function<bool(double share)> going_on = {};
};

// In the order of class_figure_list(). Both have the same classes and features (CHECKed). A figure
// has no value where a side has fewer than two images, or one that the classifier finds no numbers
// for. In double; a pure function, for which the team shares the draws out.
std::vector<Figure> compute_class_figures(const ClassifiedImages& data,
                                          const ClassifiedImages& generated,
                                          const ClassFigureOptions& options,
                                          runtime::ThreadTeam& team);

}  // namespace troupe::model
