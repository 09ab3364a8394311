#include "study/method.h"

#include <algorithm>
#include <utility>

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

class GridMethod final : public Method {
 public:
  explicit GridMethod(const Study& study)
      : points_(grid_points(study.space, study.method.levels, kMostTrials)) {}

  std::uint32_t trials() const override { return static_cast<std::uint32_t>(points_.size()); }
  bool learns_for(std::uint32_t) const override { return false; }
  Point propose(std::uint32_t trial, const Known&) const override {
    return points_[trial % points_.size()];
  }

 private:
  const std::vector<Point> points_;
};

// The values of a dimension in a grid.
std::vector<double> grid_values(const Dimension& dimension, std::uint32_t continuous,
                                std::size_t most) {
  const std::uint64_t own = levels(dimension);
  const std::uint64_t count = own == 0 ? continuous : own;
  std::vector<double> values;
  for (std::uint64_t i = 0; i < count && values.size() < most; ++i) {
    const auto number = static_cast<double>(i);
    const double share = own == 0 ? number / (static_cast<double>(count) - 1.0)
                                  : (number + 0.5) / static_cast<double>(count);
    values.push_back(value_at(dimension, share));
  }
  return values;
}

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
  return settled(space, std::move(point));
}

Point spread_point(const Space& space, std::uint64_t seed, std::uint32_t number,
                   std::uint32_t count) {
  Point point;
  for (std::uint32_t i = 0; i < space.size(); ++i) {
    std::vector<std::pair<double, std::uint32_t>> order;
    for (std::uint32_t j = 0; j < count; ++j) {
      order.emplace_back(draw(seed, 0, DrawUse::kStratum, i * count + j), j);
    }
    std::ranges::sort(order);
    const double within = draw(seed, number, DrawUse::kPoint, i);
    point.push_back(value_at(space[i], (order[number].second + within) / count));
  }
  return point;
}

// Each dimension in turn makes several points of each there is. Every point of the dimensions so
// far becomes one of the grid at least, so that no more than `most` are kept.
std::vector<Point> grid_points(const Space& space, std::uint32_t levels, std::size_t most) {
  std::vector<Point> points{{}};
  for (std::size_t i = 0; i < space.size(); ++i) {
    const std::vector<double> values = grid_values(space[i], levels, most);
    std::vector<Point> longer;
    for (const Point& point : points) {
      for (const double value : exists(space, i, point) ? values : std::vector{kAbsent}) {
        if (longer.size() == most) break;
        longer.push_back(point);
        longer.back().push_back(value);
      }
    }
    points = std::move(longer);
  }
  return points;
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
