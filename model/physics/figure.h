#pragma once

// One figure of a comparison, with what a reader needs to judge it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/fields.h"

namespace troupe::model {

struct Figure {
  std::string name;    // of words with points between: "response", "hits.wasserstein"
  std::string title;   // for people
  std::string unit;    // "%", "layers", ...; "" for pure numbers
  std::string source;  // of the formula
  double ideal = 0.0;  // that of equal samples: 0, 1 for a ratio, 0.5 for the area of a classifier
  // Nothing where the samples do not have it; then the others mean nothing.
  std::optional<double> value;
  double uncertainty = 0.0;  // standard deviation over samples drawn from the two
  // How far from `ideal` the figure is for two equal samples, as large as the two compared: mean,
  // and the distance that 95 % of them stay within. model/physics/figures.h says how it is found.
  double floor = 0.0;
  double floor_95 = 0.0;

  // How far the value is from the ideal; 0 without a value.
  double distance() const;
  // False where equal samples differ as much: nothing is known against the generator then.
  bool beyond_floor() const { return distance() > floor_95; }
};

template <class Archive>
void fields(Archive& archive, runtime::Like<Figure> auto& figure) {
  archive.text("name", figure.name, 100);
  archive.text("title", figure.title, 200);
  archive.text("unit", figure.unit, 20);
  archive.text("source", figure.source, 300);
  archive.real("ideal", figure.ideal, 6);
  archive.perhaps("value", figure.value, [](auto& item, double value) { item.real("", value, 6); });
  archive.real("uncertainty", figure.uncertainty, 6);
  archive.real("floor", figure.floor, 6);
  archive.real("floor_95", figure.floor_95, 6);
}

// The figure of that name; null: there is none.
const Figure* find_figure(std::span<const Figure> figures, std::string_view name);

}  // namespace troupe::model
