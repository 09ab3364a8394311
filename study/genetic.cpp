// Search by descent, after the genetic algorithm of NNLO (mpi_opt): parents win tournaments of two,
// a child lies beyond the better parent as seen from the other, and its values change by less and
// less (non-uniform mutation, Michalewicz 1992). Its generations with an elite are left out: the
// best trials so far, of any time, are the parents, so that nobody waits for a generation to end. A
// child that was proposed before is drawn again, some times.

#include <algorithm>
#include <utility>

#include "runtime/base/math.h"
#include "study/draws.h"
#include "study/method.h"

namespace troupe::study {
namespace {

namespace math = runtime::math;

// The power of the share of trials that are still to come, as NNLO has it.
constexpr double kNonUniformity = 3.0;
constexpr std::uint32_t kMostChildren = 50;  // drawn for one trial

class GeneticMethod final : public Method {
 public:
  explicit GeneticMethod(const Study& study) : space_(study.space), options_(study.method) {}

  std::uint32_t trials() const override { return options_.trials; }
  bool learns_for(std::uint32_t trial) const override { return trial >= options_.population; }

  Point propose(std::uint32_t trial, const Known& known) const override {
    const std::vector<Observation> parents = best_of(known);
    if (!learns_for(trial) || parents.size() < 2) {
      return random_point(space_, options_.seed, trial);
    }
    Point child;
    for (std::uint32_t attempt = 0; attempt < kMostChildren; ++attempt) {
      child = child_of(parents, {trial, attempt});
      if (!known.has(child)) break;
    }
    return child;
  }

 private:
  // What the random numbers of a child depend on.
  struct Birth {
    std::uint32_t trial, attempt;
  };

  Point child_of(const std::vector<Observation>& parents, Birth birth) const {
    const std::size_t first = tournament(parents.size(), birth, 0);
    const std::size_t second = tournament(parents.size(), birth, 1);
    // They are sorted.
    const Point& better = parents[std::min(first, second)].point;
    const Point& worse = parents[std::max(first, second)].point;
    const bool of_two = drawn_of_parents(4, birth) < options_.crossover && first != second;
    Point child;
    for (std::uint32_t i = 0; i < space_.size(); ++i) {
      const double value = of_two ? crossed(i, better[i], worse[i], birth) : better[i];
      child.push_back(mutated(i, value, birth));
    }
    return settled(space_, std::move(child));
  }

  // Those that have not failed, the best first; of equal ones the older.
  std::vector<Observation> best_of(const Known& known) const {
    std::vector<Observation> best;
    for (const Observation& each : known.ended) {
      if (each.cost) best.push_back(each);
    }
    std::ranges::stable_sort(best, {}, [](const Observation& each) { return *each.cost; });
    if (best.size() > options_.population) best.resize(options_.population);
    return best;
  }

  // The better of two that are drawn.
  std::size_t tournament(std::size_t count, Birth birth, std::uint32_t number) const {
    const auto drawn = [&](std::uint32_t index) {
      const double share = drawn_of_parents(2 * number + index, birth);
      return static_cast<std::size_t>(share * static_cast<double>(count));
    };
    return std::min(drawn(0), drawn(1));
  }

  // Five of each child.
  double drawn_of_parents(std::uint32_t number, Birth birth) const {
    return draw(options_.seed, birth.trial, DrawUse::kParents, 5 * birth.attempt + number);
  }
  // Four of each dimension of each child.
  double drawn(std::uint32_t dimension, std::uint32_t number, Birth birth) const {
    const auto before = static_cast<std::uint32_t>(space_.size()) * birth.attempt;
    return draw(options_.seed, birth.trial, DrawUse::kChild, 4 * (before + dimension) + number);
  }

  double crossed(std::uint32_t dimension, double better, double worse, Birth birth) const {
    const Dimension& own = space_[dimension];
    // A child may have what only one of its parents has.
    if (worse == kAbsent) return better;
    if (better == kAbsent) return worse;
    const double share = drawn(dimension, 0, birth);
    if (own.choice) return share < 0.5 ? better : worse;
    const double from = share_of(own, worse), to = share_of(own, better);
    return value_near(own, to + share * (to - from));
  }

  double mutated(std::uint32_t dimension, double value, Birth birth) const {
    if (value != kAbsent && drawn(dimension, 1, birth) >= options_.mutation) return value;
    const Dimension& own = space_[dimension];
    const double amount = drawn(dimension, 2, birth), direction = drawn(dimension, 3, birth);
    if (own.choice || value == kAbsent) return value_at(own, amount);
    const std::uint32_t trials = std::max(options_.trials, birth.trial + 1);
    const double left = 1.0 - birth.trial / static_cast<double>(trials);
    const double part = 1.0 - math::pow(amount, math::pow(left, kNonUniformity));
    const double share = share_of(own, value);
    return value_near(own, direction > 0.5 ? share + part * (1.0 - share) : share - part * share);
  }

  const Space space_;
  const MethodOptions options_;
};

}  // namespace

std::unique_ptr<Method> make_genetic(const Study& study) {
  return std::make_unique<GeneticMethod>(study);
}

}  // namespace troupe::study
