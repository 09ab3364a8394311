#pragma once

// Plots as physicists draw them, as SVG inside a page: two samples over the same bins with error
// bars, and their ratio below; and maps of numbers. Colours are the page's, by the classes that
// kPlotStyle sets, so that they follow its light and dark scheme.
//
// Pure functions; any thread.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::model {

// A value and its error in each bin; not finite: none.
struct PlottedSeries {
  std::vector<double> values, errors;
};

struct ComparisonPlot {
  std::string title;
  std::string x_label, y_label;
  std::vector<double> edges;  // one more than bins, rising; above 0 with log_x
  PlottedSeries data, generated;
  bool log_x = false;
  bool log_y = false;  // values not above 0 are left out
  std::string note;    // a line below it; "": none
};

// One <figure>: the data as steps with a band of their errors, the generated showers as points with
// error bars, below it generated / data with both errors. Its text says what people who do not see
// it miss most: the largest deviation of the ratio in bins that have data.
std::string plot_html(const ComparisonPlot& plot);

struct HeatMap {
  std::string title;
  std::string x_label, y_label;
  std::size_t width = 0;       // values in a row
  std::vector<double> values;  // rows from below
  // Colours from `low` to `high`; with `diverging`, 0 is in the middle and -high at the other end.
  double low = 0.0, high = 1.0;
  bool diverging = false;
};
std::string map_html(const HeatMap& map);

// Text in HTML.
std::string escaped(std::string_view text);

// CSS of the two.
extern const char* const kPlotStyle;

}  // namespace troupe::model
