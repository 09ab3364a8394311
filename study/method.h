#pragma once

// How a study chooses its trials.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "study/study_file.h"

namespace troupe::study {

// A trial that has ended.
struct Observation {
  Point point;
  std::optional<double> cost;  // less is better; none: it has failed
};

// All that a proposal may depend on.
struct Known {
  std::vector<Observation> ended;
  std::vector<Point> pending;  // proposed before, and not known to have ended

  bool has(const Point& point) const;
};

// Immutable; any thread.
class Method {
 public:
  virtual ~Method() = default;
  // How many trials there are.
  virtual std::uint32_t trials() const = 0;
  // Whether the proposal of this trial, counted from 0, depends on `known`.
  virtual bool learns_for(std::uint32_t trial) const = 0;
  // The same arguments give the same point, on any machine.
  virtual Point propose(std::uint32_t trial, const Known& known) const = 0;
};

// That of the study.
std::unique_ptr<Method> make_method(const Study& study);

// Each by itself, for the options that name it.
std::unique_ptr<Method> make_grid(const Study& study);
std::unique_ptr<Method> make_random(const Study& study);
std::unique_ptr<Method> make_genetic(const Study& study);
std::unique_ptr<Method> make_bayesian(const Study& study);

// A point drawn for a trial, each value as likely as the next.
Point random_point(const Space& space, std::uint64_t seed, std::uint32_t trial);

// Number `number` of `count` points that are spread over the space, one in each stratum of every
// dimension (McKay, Beckman and Conover, Technometrics 21, 1979). It has a value of every
// dimension, whether it exists there or not.
Point spread_point(const Space& space, std::uint64_t seed, std::uint32_t number,
                   std::uint32_t count);

// Every combination of values once, but no more than so many: `levels` of a continuous dimension,
// with both bounds, and all of another one. The last dimension changes from one to the next.
std::vector<Point> grid_points(const Space& space, std::uint32_t levels, std::size_t most);

}  // namespace troupe::study
