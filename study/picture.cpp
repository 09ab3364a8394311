#include "study/picture.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "model/physics/svg_plot.h"

namespace troupe::study {
namespace {

using model::escaped;

constexpr double kWidth = 440, kHeight = 240, kLeft = 70, kRight = 430, kTop = 10, kBottom = 200;

// A scale is logarithmic where costs differ by more than this factor.
constexpr double kLogFrom = 20.0;

double x(double share) { return kLeft + 8 + share * (kRight - kLeft - 16); }

std::string text(double x, double y, const char* anchor, const std::string& what) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(what));
}

std::string items(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += "<li>" + escaped(text) + "</li>";
  return list;
}

}  // namespace

const char* const kPictureStyle = R"(
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1.5rem; }
figure { margin: 0; } figcaption { font-weight: 600; } svg { width: 100%; height: auto; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
figure ol, figure ul { margin: 0; font-size: 0.8rem; } figure ul { list-style: none; padding: 0; }
.frame { fill: none; stroke: var(--line); } .dot { fill: var(--dot); } .bar { stroke: var(--line); }
.curve { fill: none; stroke: var(--dot); opacity: 0.5; }
.best { fill: none; stroke: var(--best); stroke-width: 2; } .dot.best { fill: var(--best); stroke: none; }
.group { fill: none; stroke-width: 2; } li.key::before { content: "\25cf\00a0"; }
.g0 { --own: #1f6feb; } .g1 { --own: #c2410c; } .g2 { --own: #15803d; }
.g3 { --own: #9333ea; } .g4 { --own: #0e7490; } .g5 { --own: #a16207; }
.group.g0, .group.g1, .group.g2, .group.g3, .group.g4, .group.g5 { stroke: var(--own); }
.dot.g0, .dot.g1, .dot.g2, .dot.g3, .dot.g4, .dot.g5 { fill: var(--own); }
.key::before { color: var(--own); } .chosen { stroke: var(--ink); stroke-width: 2; }
)";

Drawing::Drawing(const Study& study, std::optional<std::uint32_t> best,
                 const std::vector<Dot>& dots)
    : study_(study), best_(best) {
  std::vector<double> costs;
  for (const Dot& dot : dots) costs.push_back(study.objective.cost(dot.figure));
  std::ranges::sort(costs);
  const double least = costs.front(), most = costs.back();
  is_log_ = least * most > 0.0 && std::max(most / least, least / most) > kLogFrom;
  // On a linear scale the worst tenth may be beyond any picture.
  low_ = scaled(least);
  high_ = is_log_ ? scaled(most) : costs[costs.size() - 1 - costs.size() / 10];
  const double room = high_ > low_ ? 0.05 * (high_ - low_) : std::max(std::abs(low_), 1.0);
  low_ -= room;
  high_ += room;
}

// Costs of figures that are to be large are below 0.
double Drawing::scaled(double cost) const {
  if (!is_log_) return cost;
  return study_.objective.maximise ? -std::log(-cost) : std::log(cost);
}

double Drawing::unscaled(double height) const {
  if (!is_log_) return height;
  return study_.objective.maximise ? -std::exp(-height) : std::exp(height);
}

double Drawing::y(double cost) const {
  // A bar may reach to the other side of 0.
  const bool is_beyond = is_log_ && (cost < 0.0) != study_.objective.maximise.has_value();
  const double height = is_beyond ? (cost < 0.0 ? low_ : high_) : scaled(cost);
  const double part = std::clamp((height - low_) / (high_ - low_), 0.0, 1.0);
  const double from_best = part * (kBottom - kTop);
  return study_.objective.maximise ? kTop + from_best : kBottom - from_best;
}

std::string Drawing::html(const Picture& picture) const {
  std::string svg = fmt::format(
      "<figure><figcaption>{}</figcaption>\n<svg viewBox=\"0 0 {} {}\" role=\"img\">\n"
      "<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
      escaped(picture.title), kWidth, kHeight, kLeft, kTop, kRight - kLeft, kBottom - kTop);
  for (const double part : {0.0, 0.5, 1.0}) {
    const double cost = unscaled(low_ + part * (high_ - low_));
    svg += text(kLeft - 6, y(cost) + 4, "end", fmt::format("{:.3g}", study_.objective.cost(cost)));
  }
  for (const auto& [at, what] : picture.ticks) svg += text(x(at), kBottom + 18, "middle", what);
  if (picture.tells_best) svg += best_line(picture.dots);
  for (const Curve& curve : picture.curves) {
    svg += line(curve.trial == best_ ? "best" : "curve", curve.points,
                fmt::format("<title>trial {}</title>", curve.trial));
  }
  for (const Dot& each : picture.dots) svg += dot(each, each.trial == best_ ? "best" : "");
  std::string below;
  for (std::size_t i = 0; i < picture.groups.size(); ++i) {
    svg += group(picture.groups[i], i);
    below += fmt::format("<li class=\"key g{}\">{}</li>", i, escaped(picture.groups[i].name));
  }
  if (!below.empty()) below = "<ul>" + below + "</ul>\n";
  if (!picture.key.empty()) below += "<ol>" + items(picture.key) + "</ol>\n";
  return svg + "</svg>" + below + "</figure>\n";
}

std::string Drawing::dot(const Dot& dot, const std::string& kind) const {
  std::string svg;
  if (dot.deviation) {
    svg += fmt::format(
        "<line class=\"bar\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n",
        x(dot.x), y(study_.objective.cost(dot.figure - *dot.deviation)),
        y(study_.objective.cost(dot.figure + *dot.deviation)));
  }
  return svg + fmt::format(
                   "<circle class=\"dot{}{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>trial {}: "
                   "{:.6g}</title></circle>\n",
                   kind.empty() ? "" : " ", kind, x(dot.x), y(study_.objective.cost(dot.figure)),
                   dot.trial, dot.figure);
}

std::string Drawing::line(const std::string& kind,
                          const std::vector<std::pair<double, double>>& points,
                          const std::string& title) const {
  std::string places;
  for (const auto& [at, figure] : points) {
    places += fmt::format("{:.1f},{:.1f} ", x(at), y(study_.objective.cost(figure)));
  }
  return fmt::format("<polyline class=\"{}\" points=\"{}\">{}</polyline>\n", kind, places, title);
}

std::string Drawing::best_line(const std::vector<Dot>& dots) const {
  std::vector<std::pair<double, double>> points;
  std::optional<double> best;
  for (const Dot& dot : dots) {
    const double cost = study_.objective.cost(dot.figure);
    if (best) points.emplace_back(dot.x, study_.objective.cost(*best));
    best = best ? std::min(*best, cost) : cost;
    points.emplace_back(dot.x, study_.objective.cost(*best));
  }
  return line("best", points);
}

std::string Drawing::group(const Group& group, std::size_t number) const {
  std::vector<std::pair<double, double>> points;
  std::string svg;
  for (const Dot& each : group.dots) {
    points.emplace_back(each.x, each.figure);
    svg += dot(each, fmt::format("g{}{}", number, each.trial == best_ ? " chosen" : ""));
  }
  return line(fmt::format("group g{}", number), points) + svg;
}

}  // namespace troupe::study
