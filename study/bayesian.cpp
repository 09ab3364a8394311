// Search by what a Gaussian process expects. The first trials are spread over the space. Later ones
// are where the most improvement is expected, once pending ones have ended as expected.

#include <algorithm>
#include <cmath>
#include <utility>

#include "study/descent.h"
#include "study/draws.h"
#include "study/expected_improvement.h"
#include "study/method.h"
#include "study/surrogate.h"

namespace troupe::study {
namespace {

constexpr std::uint32_t kCandidates = 1000;
constexpr std::size_t kBeginnings = 4;  // of descents, at the best candidates
constexpr std::size_t kNear = 3;        // trials around which there are more candidates
constexpr std::uint32_t kAround = 100;  // of each of these
// How far these are away, in shares of a dimension.
constexpr double kWidest = 0.2;

class BayesianMethod final : public Method {
 public:
  explicit BayesianMethod(const Study& study) : space_(study.space), options_(study.method) {}

  std::uint32_t trials() const override { return options_.trials; }
  bool learns_for(std::uint32_t trial) const override { return trial >= options_.first; }

  Point propose(std::uint32_t trial, const Known& known) const override {
    if (!learns_for(trial)) {
      return settled(space_, spread_point(space_, options_.seed, trial, options_.first));
    }
    const auto is_sound = [](const Observation& each) { return each.cost.has_value(); };
    if (std::ranges::count_if(known.ended, is_sound) < 2) {
      return random_point(space_, options_.seed, trial);
    }
    Surrogate surrogate(space_, known.ended);
    surrogate.believe(known.pending);
    std::vector<Scored> candidates = candidates_of(trial, known, surrogate);
    const std::size_t beginnings = std::min(kBeginnings, candidates.size());
    for (std::size_t i = 0; i < beginnings; ++i) {
      candidates.push_back(climb(candidates[i].point, surrogate));
    }
    std::ranges::stable_sort(candidates, {}, &Scored::cost);
    // A place that was looked at gives nothing new, unless there is no other.
    const auto fresh = std::ranges::find_if(
        candidates, [&](const Scored& each) { return !known.has(each.point); });
    return (fresh == candidates.end() ? candidates.front() : *fresh).point;
  }

 private:
  struct Scored {
    Point point;
    double cost = 0.0;  // less is better: the logarithm of the expected improvement, negative
  };

  static Scored score(Point point, const Surrogate& surrogate) {
    const double gain = log_expected_improvement(surrogate.at(point), surrogate.best());
    return {std::move(point), -gain};
  }

  // The best first.
  std::vector<Scored> candidates_of(std::uint32_t trial, const Known& known,
                                    const Surrogate& surrogate) const {
    std::uint32_t draws = 0;
    const auto next = [&] { return draw(options_.seed, trial, DrawUse::kCandidates, draws++); };
    std::vector<Scored> candidates;
    for (std::uint32_t i = 0; i < kCandidates; ++i) {
      Point point;
      for (const Dimension& dimension : space_) point.push_back(value_at(dimension, next()));
      candidates.push_back(score(settled(space_, std::move(point)), surrogate));
    }
    std::vector<Observation> best;
    for (const Observation& each : known.ended) {
      if (each.cost) best.push_back(each);
    }
    std::ranges::stable_sort(best, {}, [](const Observation& each) { return *each.cost; });
    if (best.size() > kNear) best.resize(kNear);
    for (const Observation& each : best) {
      for (std::uint32_t i = 0; i < kAround; ++i) {
        // From far to near.
        const double width = std::ldexp(kWidest, -static_cast<int>(i % 8));
        candidates.push_back(score(nearby(each.point, width, next), surrogate));
      }
    }
    std::ranges::stable_sort(candidates, {}, &Scored::cost);
    return candidates;
  }

  Point nearby(const Point& centre, double width, auto& next) const {
    Point point;
    for (std::size_t i = 0; i < space_.size(); ++i) {
      const double first = next(), second = next();
      if (centre[i] == kAbsent || (space_[i].choice && second < width)) {
        point.push_back(value_at(space_[i], first));
      } else if (space_[i].choice) {
        point.push_back(centre[i]);
      } else {
        const double share = share_of(space_[i], centre[i]) + width * (2.0 * first - 1.0);
        point.push_back(value_near(space_[i], share));
      }
    }
    return settled(space_, std::move(point));
  }

  bool moves(const Point& from, std::size_t i) const {
    return !space_[i].choice && from[i] != kAbsent;
  }

  // Numbers move; words stay what they are, since the candidates had all of them.
  Scored climb(const Point& from, const Surrogate& surrogate) const {
    const auto point_at = [&](const Coordinates& place) {
      Point point = from;
      for (std::size_t i = 0; i < space_.size(); ++i) {
        if (moves(from, i)) point[i] = value_near(space_[i], place[i]);
      }
      return point;
    };
    DescentOptions options;
    options.first_step = 0.05;
    options.last_step = 1e-3;
    options.most_calls = 200 * space_.size();
    const Descent found = descend(place_of(space_, from), options, [&](const Coordinates& place) {
      return score(point_at(place), surrogate).cost;
    });
    return {point_at(found.at), found.value};
  }

  const Space space_;
  const MethodOptions options_;
};

}  // namespace

std::unique_ptr<Method> make_bayesian(const Study& study) {
  return std::make_unique<BayesianMethod>(study);
}

}  // namespace troupe::study
