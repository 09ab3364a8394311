#include "study/method.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "study/draws.h"

namespace troupe::study {
namespace {

class RandomMethod final : public Method {
 public:
  explicit RandomMethod(const Study& study) : space_(study.space), options_(study.method) {}

  std::uint32_t trials() const override { return options_.trials; }
  bool learns_for(std::uint32_t) const override { return false; }
  Point propose(std::uint32_t trial, const Known&) const override {
    return random_point(space_, options_.seed, trial);
  }

 private:
  const Space space_;
  const MethodOptions options_;
};

// The last dimension changes from trial to trial.
class GridMethod final : public Method {
 public:
  explicit GridMethod(const Study& study) : space_(study.space) {
    for (const Dimension& dimension : space_) {
      const std::uint64_t count = levels(dimension);
      counts_.push_back(count == 0 ? study.method.levels : static_cast<std::uint32_t>(count));
      trials_ *= counts_.back();
    }
  }

  std::uint32_t trials() const override { return trials_; }
  bool learns_for(std::uint32_t) const override { return false; }
  Point propose(std::uint32_t trial, const Known&) const override {
    Point point(space_.size());
    for (std::size_t i = space_.size(); i-- > 0;) {
      point[i] = level(space_[i], trial % counts_[i], counts_[i]);
      trial /= counts_[i];
    }
    return point;
  }

 private:
  // Levels have their own shares; those of continuous dimensions are both bounds and in between.
  static double level(const Dimension& dimension, std::uint32_t number, std::uint32_t count) {
    const bool is_continuous = levels(dimension) == 0;
    const double share = is_continuous ? number / (count - 1.0) : (number + 0.5) / count;
    return value_at(dimension, share);
  }

  const Space space_;
  std::vector<std::uint32_t> counts_;
  std::uint32_t trials_ = 1;
};

}  // namespace

bool Known::has(const Point& point) const {
  return std::ranges::find(pending, point) != pending.end() ||
         std::ranges::find(ended, point, &Observation::point) != ended.end();
}

Point random_point(const Space& space, std::uint64_t seed, std::uint32_t trial) {
  Point point;
  for (std::uint32_t i = 0; i < space.size(); ++i) {
    point.push_back(value_at(space[i], draw(seed, trial, DrawUse::kPoint, i)));
  }
  return point;
}

std::unique_ptr<Method> make_random(const Study& study) {
  return std::make_unique<RandomMethod>(study);
}

std::unique_ptr<Method> make_grid(const Study& study) {
  return std::make_unique<GridMethod>(study);
}

std::unique_ptr<Method> make_method(const Study& study) {
  switch (study.method.kind) {
    case MethodKind::kRandom:
      return make_random(study);
    case MethodKind::kGrid:
      return make_grid(study);
    case MethodKind::kGenetic:
      return make_genetic(study);
    case MethodKind::kBayesian:
      return make_bayesian(study);
  }
  CHECK(false, "a kind of method without a method");
  return nullptr;
}

}  // namespace troupe::study
