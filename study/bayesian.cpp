// Search by what a Gaussian process expects. The first trials are spread over the space, one in
// each stratum of each dimension (McKay, Beckman and Conover, Technometrics 21, 1979). Later ones
// are where the most improvement is expected. A trial that is pending counts as one that has ended
// with what is expected of it (Ginsbourger, Le Riche and Carraro 2010, "kriging believer").

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "study/descent.h"
#include "study/draws.h"
#include "study/expected_improvement.h"
#include "study/gaussian_process.h"
#include "study/method.h"

namespace troupe::study {
namespace {

constexpr std::uint32_t kCandidates = 1000;
constexpr std::size_t kBeginnings = 4;  // of descents, at the best candidates
constexpr std::size_t kNear = 3;        // trials around which there are more candidates
constexpr std::uint32_t kAround = 100;  // of each of these
// How far these are away, in shares of a dimension.
constexpr double kWidest = 0.2;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Costs for the process. Those that are far worse than the others would hide how these differ: they
// count as less bad, in the same order up to there. Where half of them are as good as the best,
// none is tamed. A trial that has failed is as bad as the worst or, where all others are equal,
// worse. Then the mean is 0 and the variance 1.
std::vector<double> tamed(const std::vector<Observation>& ended) {
  std::vector<double> costs;
  for (const Observation& each : ended) {
    if (each.cost) costs.push_back(*each.cost);
  }
  const double best = *std::ranges::min_element(costs), middle = median_of(costs);
  const double most = *std::ranges::max_element(costs);
  const double worst = middle > best ? std::min(most, middle + 3.0 * (middle - best)) : most;
  const double failed = worst > best ? worst : best + std::max(std::abs(best), 1.0);
  std::vector<double> all;
  for (const Observation& each : ended) {
    all.push_back(each.cost ? std::min(*each.cost, worst) : failed);
  }
  const auto count = static_cast<double>(all.size());
  const double mean = std::accumulate(all.begin(), all.end(), 0.0) / count;
  double squares = 0.0;
  for (double& cost : all) {
    cost -= mean;
    squares += cost * cost;
  }
  const double deviation = std::sqrt(squares / count);
  for (double& cost : all) cost /= deviation > 0.0 ? deviation : 1.0;
  return all;
}

class BayesianMethod final : public Method {
 public:
  explicit BayesianMethod(const Study& study) : space_(study.space), options_(study.method) {
    for (const Dimension& dimension : space_) is_word_.push_back(dimension.choice.has_value());
  }

  std::uint32_t trials() const override { return options_.trials; }
  bool learns_for(std::uint32_t trial) const override { return trial >= options_.first; }

  Point propose(std::uint32_t trial, const Known& known) const override {
    if (!learns_for(trial)) return spread_out(trial);
    const auto is_sound = [](const Observation& each) { return each.cost.has_value(); };
    if (std::ranges::count_if(known.ended, is_sound) < 2) {
      return random_point(space_, options_.seed, trial);
    }
    const Expectation expectation = expect(known);
    std::vector<Scored> candidates = candidates_of(trial, known, expectation);
    const std::size_t beginnings = std::min(kBeginnings, candidates.size());
    for (std::size_t i = 0; i < beginnings; ++i) {
      candidates.push_back(climb(candidates[i].point, expectation));
    }
    std::ranges::stable_sort(candidates, {}, &Scored::cost);
    // A place that was looked at gives nothing new, unless there is no other.
    const auto fresh = std::ranges::find_if(
        candidates, [&](const Scored& each) { return !known.has(each.point); });
    return (fresh == candidates.end() ? candidates.front() : *fresh).point;
  }

 private:
  struct Expectation {
    GaussianProcess process;
    double best;
  };
  struct Scored {
    Point point;
    double cost = 0.0;  // less is better: the logarithm of the expected improvement, negative
  };

  Coordinates place_of(const Point& point) const {
    Coordinates place;
    for (std::size_t i = 0; i < space_.size(); ++i) {
      place.push_back(share_of(space_[i], point[i]));
    }
    return place;
  }

  // Number `trial` of the first ones: a stratum of each dimension, and where in it.
  Point spread_out(std::uint32_t trial) const {
    Point point;
    for (std::uint32_t i = 0; i < space_.size(); ++i) {
      std::vector<std::pair<double, std::uint32_t>> order;
      for (std::uint32_t j = 0; j < options_.first; ++j) {
        const std::uint32_t index = i * options_.first + j;
        order.emplace_back(draw(options_.seed, 0, DrawUse::kStratum, index), j);
      }
      std::ranges::sort(order);
      const double within = draw(options_.seed, trial, DrawUse::kPoint, i);
      point.push_back(value_at(space_[i], (order[trial].second + within) / options_.first));
    }
    return point;
  }

  Expectation expect(const Known& known) const {
    std::vector<double> costs = tamed(known.ended);
    std::vector<Coordinates> places;
    for (const Observation& each : known.ended) places.push_back(place_of(each.point));
    const KernelOptions kernel = fit_kernel(is_word_, places, costs);
    GaussianProcess process(is_word_, places, costs, kernel);
    double best = std::numeric_limits<double>::infinity();
    for (const Coordinates& place : places) best = std::min(best, process.at(place).mean);
    if (known.pending.empty()) return {std::move(process), best};
    for (const Point& point : known.pending) {
      places.push_back(place_of(point));
      costs.push_back(process.at(places.back()).mean);
      best = std::min(best, costs.back());
    }
    return {GaussianProcess(is_word_, std::move(places), costs, kernel), best};
  }

  Scored score(Point point, const Expectation& expectation) const {
    const Posterior posterior = expectation.process.at(place_of(point));
    return {std::move(point), -log_expected_improvement(posterior, expectation.best)};
  }

  // The best first.
  std::vector<Scored> candidates_of(std::uint32_t trial, const Known& known,
                                    const Expectation& expectation) const {
    std::uint32_t draws = 0;
    const auto next = [&] { return draw(options_.seed, trial, DrawUse::kCandidates, draws++); };
    std::vector<Scored> candidates;
    for (std::uint32_t i = 0; i < kCandidates; ++i) {
      Point point;
      for (const Dimension& dimension : space_) point.push_back(value_at(dimension, next()));
      candidates.push_back(score(std::move(point), expectation));
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
        candidates.push_back(score(nearby(each.point, width, next), expectation));
      }
    }
    std::ranges::stable_sort(candidates, {}, &Scored::cost);
    return candidates;
  }

  Point nearby(const Point& centre, double width, auto& next) const {
    Point point;
    for (std::size_t i = 0; i < space_.size(); ++i) {
      const double first = next(), second = next();
      if (space_[i].choice) {
        point.push_back(second < width ? value_at(space_[i], first) : centre[i]);
        continue;
      }
      const double share = share_of(space_[i], centre[i]) + width * (2.0 * first - 1.0);
      point.push_back(value_near(space_[i], share));
    }
    return point;
  }

  // Numbers move; words stay what they are, since the candidates had all of them.
  Scored climb(const Point& from, const Expectation& expectation) const {
    const auto point_at = [&](const Coordinates& place) {
      Point point = from;
      for (std::size_t i = 0; i < space_.size(); ++i) {
        if (!space_[i].choice) point[i] = value_near(space_[i], place[i]);
      }
      return point;
    };
    DescentOptions options;
    options.first_step = 0.05;
    options.last_step = 1e-3;
    options.most_calls = 200 * space_.size();
    const Descent found = descend(place_of(from), options, [&](const Coordinates& place) {
      return score(point_at(place), expectation).cost;
    });
    return {point_at(found.at), found.value};
  }

  const Space space_;
  const MethodOptions options_;
  std::vector<bool> is_word_;
};

}  // namespace

std::unique_ptr<Method> make_bayesian(const Study& study) {
  return std::make_unique<BayesianMethod>(study);
}

}  // namespace troupe::study
