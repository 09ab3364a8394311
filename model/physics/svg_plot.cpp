#include "model/physics/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace troupe::model {

const char* const kPlotStyle = R"(
figure { margin: 0; break-inside: avoid; }
figcaption { font-weight: 600; }
.note { margin: 0; font-size: 0.85rem; }
figure svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
.frame { fill: none; stroke: var(--line); }
.tick { stroke: var(--line); stroke-width: 0.5; }
.data-line { fill: none; stroke: var(--data); stroke-width: 1.5; }
.data-band { fill: var(--data); opacity: 0.25; }
.generated { stroke: var(--generated); fill: var(--generated); stroke-width: 1.3; }
.one { stroke: var(--ink); stroke-dasharray: 4 3; }
)";

namespace {

constexpr double kWidth = 440, kLeft = 66, kRight = 432;
constexpr double kTop = 8, kBottom = 206, kRatioTop = 220, kRatioBottom = 290, kHeight = 330;
constexpr double kMostRatio = 2.0;

// From values to places on paper.
class PlotAxis {
 public:
  PlotAxis(double low, double high, double from, double to, bool log)
      : low_(log ? std::log10(low) : low),
        high_(log ? std::log10(high) : high),
        from_(from),
        to_(to),
        log_(log) {
    if (!(high_ > low_)) high_ = low_ + 1.0;
  }

  double place(double value) const {
    const double at = ((log_ ? std::log10(value) : value) - low_) / (high_ - low_);
    return from_ + std::clamp(at, 0.0, 1.0) * (to_ - from_);
  }
  // Round values within the range, about `count`.
  std::vector<double> ticks(int count) const {
    std::vector<double> found;
    if (log_) {
      const double step = std::max(1.0, std::ceil((high_ - low_) / count));
      for (double decade = std::ceil(low_ - 1e-9); decade <= high_ + 1e-9; decade += step) {
        found.push_back(std::pow(10.0, decade));
      }
      return found;
    }
    const double rough = (high_ - low_) / count,
                 unit = std::pow(10.0, std::floor(std::log10(rough)));
    const double part = rough / unit;
    const double step = unit * (part <= 1.0 ? 1.0 : part <= 2.0 ? 2.0 : part <= 5.0 ? 5.0 : 10.0);
    for (double k = std::ceil(low_ / step - 1e-9); k * step <= high_ + 1e-9 * step; ++k) {
      found.push_back(k == 0.0 ? 0.0 : k * step);
    }
    return found;
  }

 private:
  double low_, high_, from_, to_;
  bool log_;
};

bool drawn(double value, bool log) { return std::isfinite(value) && (!log || value > 0.0); }

// The range of what is drawn, with some room.
PlotAxis y_axis(const ComparisonPlot& plot) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const PlottedSeries* series : {&plot.data, &plot.generated}) {
    for (std::size_t i = 0; i < series->values.size(); ++i) {
      const double value = series->values[i];
      if (!drawn(value, plot.log_y)) continue;
      low = std::min(low, plot.log_y ? value : value - series->errors[i]);
      high = std::max(high, value + series->errors[i]);
    }
  }
  if (low > high) return {plot.log_y ? 0.1 : 0.0, 1.0, kBottom, kTop, plot.log_y};
  if (plot.log_y) return {low / 1.5, high * 1.5, kBottom, kTop, true};
  // From 0, unless that would leave most of the plot empty.
  if (low > 0.0 && low < 0.7 * high) low = 0.0;
  const double room = 0.05 * std::max(high - low, 1e-12 * std::abs(high));
  return {low == 0.0 ? 0.0 : low - room, high + room, kBottom, kTop, false};
}

std::string ticks_svg(const PlotAxis& x, const PlotAxis& y, const PlotAxis& ratio) {
  std::string svg;
  for (const double tick : x.ticks(6)) {
    svg += fmt::format(
        R"(<line class="tick" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/><text x="{0:.1f}" y="{3}" text-anchor="middle">{4:.4g}</text>)",
        x.place(tick), kTop, kRatioBottom, kRatioBottom + 15, tick);
  }
  for (const auto& [axis, count] : {std::pair(&y, 5), std::pair(&ratio, 2)}) {
    for (const double tick : axis->ticks(count)) {
      svg += fmt::format(
          R"(<line class="tick" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/><text x="{}" y="{:.1f}" text-anchor="end">{:.4g}</text>)",
          kLeft, kRight, axis->place(tick), axis->place(tick), kLeft - 5, axis->place(tick) + 4,
          tick);
    }
  }
  return svg;
}

// Steps through the values, broken where there is none.
std::string steps_svg(const ComparisonPlot& plot, const PlotAxis& x, const PlotAxis& y) {
  std::string path, bands;
  bool open = false;
  for (std::size_t i = 0; i < plot.data.values.size(); ++i) {
    const double value = plot.data.values[i], error = plot.data.errors[i];
    if (!drawn(value, plot.log_y)) {
      open = false;
      continue;
    }
    const double left = x.place(plot.edges[i]), right = x.place(plot.edges[i + 1]);
    path += fmt::format("{}{:.1f} {:.1f}H{:.1f}", open ? "L" : "M", left, y.place(value), right);
    open = true;
    const double below = plot.log_y ? std::max(value - error, value * 1e-3) : value - error;
    const double top = y.place(value + error);
    bands += fmt::format(
        R"(<rect class="data-band" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>)", left,
        top, right - left, y.place(below) - top);
  }
  return bands + fmt::format(R"(<path class="data-line" d="{}"/>)", path);
}

std::string point_svg(double x, double y, double low, double high) {
  return fmt::format(
      R"(<line class="generated" x1="{0:.1f}" x2="{0:.1f}" y1="{2:.1f}" y2="{3:.1f}"/><circle class="generated" cx="{0:.1f}" cy="{1:.1f}" r="2"/>)",
      x, y, low, high);
}

struct Ratio {
  double value, error, data_error;
};

// Nothing finite where the data have no value.
Ratio ratio_of(const ComparisonPlot& plot, std::size_t i) {
  const double data = plot.data.values[i], generated = plot.generated.values[i];
  if (!std::isfinite(data) || !std::isfinite(generated) || data == 0.0) return {NAN, 0.0, 0.0};
  return {generated / data, std::abs(plot.generated.errors[i] / data),
          std::abs(plot.data.errors[i] / data)};
}

// An arrow at the edge for what lies beyond it.
std::string outside_svg(double x, double y, bool above) {
  return fmt::format(R"(<path class="generated" d="M{:.1f} {:.1f}l4 {}h-8z"/>)", x, y,
                     above ? 7 : -7);
}

// `reach`: of the ratio's axis from 1.
std::string points_svg(const ComparisonPlot& plot, const PlotAxis& x, const PlotAxis& y,
                       const PlotAxis& ratio, double reach) {
  std::string svg = fmt::format(R"(<line class="one" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)",
                                kLeft, kRight, ratio.place(1.0), ratio.place(1.0));
  for (std::size_t i = 0; i < plot.data.values.size(); ++i) {
    const double left = x.place(plot.edges[i]), right = x.place(plot.edges[i + 1]);
    const double middle = (left + right) / 2.0;
    const double value = plot.generated.values[i], error = plot.generated.errors[i];
    if (drawn(value, plot.log_y)) {
      const double below = plot.log_y ? std::max(value - error, value * 1e-3) : value - error;
      svg += point_svg(middle, y.place(value), y.place(below), y.place(value + error));
    }
    const Ratio found = ratio_of(plot, i);
    if (!std::isfinite(found.value)) continue;
    const double top = ratio.place(1.0 + found.data_error);
    svg += fmt::format(
        R"(<rect class="data-band" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>)", left,
        top, right - left, ratio.place(1.0 - found.data_error) - top);
    svg += std::abs(found.value - 1.0) > reach
               ? outside_svg(middle, ratio.place(found.value), found.value > 1.0)
               : point_svg(middle, ratio.place(found.value), ratio.place(found.value - found.error),
                           ratio.place(found.value + found.error));
  }
  return svg;
}

// How far the ratio panel has to reach from 1, so that most of the ratios are in it.
double ratio_reach(const ComparisonPlot& plot) {
  std::vector<double> distances;
  for (std::size_t i = 0; i < plot.data.values.size(); ++i) {
    const Ratio found = ratio_of(plot, i);
    if (std::isfinite(found.value)) distances.push_back(std::abs(found.value - 1.0));
  }
  if (distances.empty()) return 0.5;
  std::sort(distances.begin(), distances.end());
  const double most = distances[distances.size() * 9 / 10];
  for (const double reach : {0.05, 0.1, 0.2, 0.5}) {
    if (most < 0.9 * reach) return reach;
  }
  return 1.0;
}

// The bin with the largest deviation of those whose data are known to a fifth.
std::string described(const ComparisonPlot& plot) {
  double most = -1.0;
  std::size_t where = 0;
  for (std::size_t i = 0; i < plot.data.values.size(); ++i) {
    const Ratio found = ratio_of(plot, i);
    if (!std::isfinite(found.value) || found.data_error > 0.2) continue;
    if (std::abs(found.value - 1.0) <= most) continue;
    most = std::abs(found.value - 1.0);
    where = i;
  }
  if (most < 0.0) return fmt::format("{}: no bin can be compared", plot.title);
  return fmt::format("{}: generated / data is furthest from 1 between {:.4g} and {:.4g}, {:.3g}",
                     plot.title, plot.edges[where], plot.edges[where + 1],
                     ratio_of(plot, where).value);
}

std::string frame_svg(double top, double bottom) {
  return fmt::format(R"(<rect class="frame" x="{}" y="{}" width="{}" height="{}"/>)", kLeft, top,
                     kRight - kLeft, bottom - top);
}

std::string label_svg(double x, double y, bool upright, std::string_view text) {
  return fmt::format(R"(<text x="{0}" y="{1}" text-anchor="middle"{2}>{3}</text>)", x, y,
                     upright ? fmt::format(R"-( transform="rotate(-90 {} {})")-", x, y) : "",
                     escaped(text));
}

std::string figure_html(std::string_view title, std::string_view description, double height,
                        const std::string& content, std::string_view note = {}) {
  const std::string below =
      note.empty() ? "" : fmt::format("<p class=\"note\">{}</p>", escaped(note));
  return fmt::format(
      "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"{}\">{}</svg>{}</figure>\n",
      escaped(title), kWidth, height, escaped(description), content, below);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string plot_html(const ComparisonPlot& plot) {
  const std::size_t bins = plot.data.values.size();
  CHECK(plot.edges.size() == bins + 1 && plot.generated.values.size() == bins &&
            plot.data.errors.size() == bins && plot.generated.errors.size() == bins,
        "a plot needs as many values as bins");
  const PlotAxis x(plot.edges.front(), plot.edges.back(), kLeft, kRight, plot.log_x);
  const PlotAxis y = y_axis(plot);
  const double reach = std::min(ratio_reach(plot), kMostRatio - 1.0);
  const PlotAxis ratio(1.0 - reach, 1.0 + reach, kRatioBottom, kRatioTop, false);
  return figure_html(plot.title, described(plot), kHeight,
                     ticks_svg(x, y, ratio) + frame_svg(kTop, kBottom) +
                         frame_svg(kRatioTop, kRatioBottom) + steps_svg(plot, x, y) +
                         points_svg(plot, x, y, ratio, reach) +
                         label_svg((kLeft + kRight) / 2, kHeight - 6, false, plot.x_label) +
                         label_svg(14, (kTop + kBottom) / 2, true, plot.y_label) +
                         label_svg(14, (kRatioTop + kRatioBottom) / 2, true, "ratio"),
                     plot.note);
}

std::string map_html(const HeatMap& map) {
  CHECK(map.width > 0 && map.values.size() % map.width == 0, "a map has whole rows");
  constexpr double kSide = 240;
  const std::size_t rows = map.values.size() / map.width;
  const double wide = (kRight - kLeft) / static_cast<double>(map.width);
  const double tall = kSide / static_cast<double>(rows);
  std::string svg;
  double least = std::numeric_limits<double>::infinity(), largest = -least;
  for (std::size_t i = 0; i < map.values.size(); ++i) {
    const double value = map.values[i];
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    largest = std::max(largest, value);
    const double share =
        map.diverging ? std::abs(value) / map.high : (value - map.low) / (map.high - map.low);
    const char* colour = map.diverging && value < 0.0 ? "--data" : "--generated";
    svg += fmt::format(
        R"-(<rect x="{:.1f}" y="{:.1f}" width="{:.2f}" height="{:.2f}" style="fill:var({});opacity:{:.2f}"/>)-",
        kLeft + wide * static_cast<double>(i % map.width),
        kTop + kSide - tall * static_cast<double>(i / map.width + 1), wide, tall, colour,
        std::clamp(share, 0.0, 1.0));
  }
  const auto description = fmt::format("{}: from {:.3g} to {:.3g}", map.title, least, largest);
  return figure_html(
      map.title, description, kSide + 50,
      svg + frame_svg(kTop, kTop + kSide) +
          label_svg((kLeft + kRight) / 2, kSide + 26, false, map.x_label) +
          label_svg(50, kTop + kSide / 2, true, map.y_label) +
          label_svg((kLeft + kRight) / 2, kSide + 44, false,
                    fmt::format("from {:.3g} to {:.3g}; full colour at {}{:.3g}", least, largest,
                                map.diverging ? "+-" : "", map.high)));
}

}  // namespace troupe::model
