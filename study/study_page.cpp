#include "study/study_page.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/physics/svg_plot.h"
#include "study/study_report.h"

namespace troupe::study {
namespace {

using model::escaped;

constexpr const char* kStyle = R"(
:root { --ink: #1c2733; --line: #b9c3cd; --paper: #fff; --dot: #1f6feb; --best: #c2410c; color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --line: #3d4854; --paper: #0f1419; --dot: #6cb0ff; --best: #ff9a5c; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1.5rem; }
figure { margin: 0; } figcaption { font-weight: 600; } svg { width: 100%; height: auto; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
.frame { fill: none; stroke: var(--line); } .dot { fill: var(--dot); }
.curve { fill: none; stroke: var(--dot); opacity: 0.5; }
.best { fill: none; stroke: var(--best); stroke-width: 2; } .dot.best { fill: var(--best); stroke: none; }
pre { overflow-x: auto; border: 1px solid var(--line); padding: 0.5rem; }
)";

constexpr double kWidth = 440, kHeight = 240, kLeft = 70, kRight = 430, kTop = 10, kBottom = 200;

// A trial with a figure: where it stands from left to right, from 0 to 1, and its figure.
struct Dot {
  std::uint32_t trial = 0;
  double x = 0.0, figure = 0.0;
};

struct Picture {
  std::string title;
  std::vector<std::pair<double, std::string>> ticks;  // where, from 0 to 1, and what
  std::vector<Dot> dots;
  bool tells_best = false;         // a line of the best figure so far, in the order of the dots
  std::vector<Curve> curves = {};  // from left to right, from 0 to 1
};

class Drawing {
 public:
  Drawing(const Study& study, std::optional<std::uint32_t> best, const std::vector<Dot>& dots)
      : study_(study), best_(best) {
    std::vector<double> costs;
    for (const Dot& dot : dots) costs.push_back(study.objective.cost(dot.figure));
    std::ranges::sort(costs);
    // The worst tenth may be beyond any picture.
    const double low = costs.front(), high = costs[(costs.size() - 1) * 9 / 10];
    const double room = high > low ? 0.05 * (high - low) : std::max(std::abs(low), 1.0);
    low_ = low - room;
    high_ = high + room;
  }

  std::string html(const Picture& picture) const {
    std::string svg = fmt::format(
        "<figure><figcaption>{}</figcaption>\n<svg viewBox=\"0 0 {} {}\" role=\"img\">\n"
        "<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
        escaped(picture.title), kWidth, kHeight, kLeft, kTop, kRight - kLeft, kBottom - kTop);
    for (const double part : {0.0, 0.5, 1.0}) {
      const double cost = low_ + part * (high_ - low_);
      svg +=
          text(kLeft - 6, y(cost) + 4, "end", fmt::format("{:.3g}", study_.objective.cost(cost)));
    }
    for (const auto& [at, what] : picture.ticks) svg += text(x(at), kBottom + 18, "middle", what);
    if (picture.tells_best) svg += best_line(picture.dots);
    for (const Curve& curve : picture.curves) svg += curve_line(curve);
    for (const Dot& dot : picture.dots) {
      svg += fmt::format(
          "<circle class=\"dot{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>trial {}: "
          "{:.6g}</title></circle>\n",
          dot.trial == best_ ? " best" : "", x(dot.x), y(study_.objective.cost(dot.figure)),
          dot.trial, dot.figure);
    }
    return svg + "</svg></figure>\n";
  }

 private:
  static double x(double share) { return kLeft + 8 + share * (kRight - kLeft - 16); }
  // The best at the bottom.
  double y(double cost) const {
    const double part = std::clamp((cost - low_) / (high_ - low_), 0.0, 1.0);
    return kBottom - part * (kBottom - kTop);
  }
  static std::string text(double x, double y, const char* anchor, const std::string& what) {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y,
                       anchor, escaped(what));
  }
  std::string best_line(const std::vector<Dot>& dots) const {
    std::string points;
    std::optional<double> best;
    for (const Dot& dot : dots) {
      const double cost = study_.objective.cost(dot.figure);
      if (best) points += fmt::format("{:.1f},{:.1f} ", x(dot.x), y(*best));
      best = best ? std::min(*best, cost) : cost;
      points += fmt::format("{:.1f},{:.1f} ", x(dot.x), y(*best));
    }
    return fmt::format("<polyline class=\"best\" points=\"{}\"/>\n", points);
  }

  std::string curve_line(const Curve& curve) const {
    std::string points;
    for (const auto& [at, figure] : curve.points) {
      points += fmt::format("{:.1f},{:.1f} ", x(at), y(study_.objective.cost(figure)));
    }
    return fmt::format("<polyline class=\"{}\" points=\"{}\"><title>trial {}</title></polyline>\n",
                       curve.trial == best_ ? "best" : "curve", points, curve.trial);
  }

  const Study& study_;
  const std::optional<std::uint32_t> best_;
  double low_ = 0.0, high_ = 1.0;
};

// Figures in the order in which the trials were proposed.
Picture course(const Study& study, const TrialBook& book) {
  Picture picture{study.objective.figure() + " by trial, and the best so far", {}, {}, true};
  const double last = std::max<double>(1.0, static_cast<double>(book.trials().size()) - 1.0);
  for (std::uint32_t i = 0; i < book.trials().size(); ++i) {
    const auto figure = book.figure(book.trials()[i]);
    if (figure) picture.dots.push_back({i, i / last, figure->mean});
  }
  picture.ticks = {{0.0, "0"}, {1.0, fmt::format("{}", last)}};
  return picture;
}

// The figure over the steps of each run.
Picture courses(const Study& study, std::vector<Curve> curves) {
  Picture picture{
      study.objective.figure() + " by step, of the best trials", {}, {}, false, std::move(curves)};
  double last = 1.0;
  for (const Curve& curve : picture.curves) {
    if (!curve.points.empty()) last = std::max(last, curve.points.back().first);
  }
  for (Curve& curve : picture.curves) {
    for (auto& [step, figure] : curve.points) step /= last;
  }
  picture.ticks = {{0.0, "0"}, {1.0, fmt::format("{}", last)}};
  return picture;
}

Picture slice(const Study& study, std::size_t number, const std::string& name,
              const std::vector<Dot>& all, const TrialBook& book) {
  const Dimension& dimension = study.space[number];
  Picture picture{study.objective.figure() + " by " + name, {}, {}, false};
  const double words = dimension.choice ? static_cast<double>(dimension.choice->size()) : 0.0;
  const auto place = [&](double value) {
    const double share = share_of(dimension, value);
    return dimension.choice ? (share + 0.5) / words : share;
  };
  for (Dot dot : all) {
    const double value = book.trials()[dot.trial].point[number];
    if (value == kAbsent) continue;
    dot.x = place(value);
    picture.dots.push_back(dot);
  }
  if (!dimension.choice) {
    for (const double share : {0.0, 1.0}) {
      const double value = value_at(dimension, share);
      picture.ticks.emplace_back(share_of(dimension, value), text_of(dimension, value));
    }
    return picture;
  }
  for (std::size_t i = 0; i < dimension.choice->size() && i < 10; ++i) {
    picture.ticks.emplace_back(place(static_cast<double>(i)), (*dimension.choice)[i]);
  }
  return picture;
}

}  // namespace

std::string study_html(const Study& study, const TrialBook& book, const std::vector<Curve>& curves,
                       std::uint32_t renewed_s) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n{}<title>{}: a study</title>\n"
      "<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n",
      renewed_s == 0 ? ""
                     : fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", renewed_s),
      escaped(study.name), kStyle, escaped(study.name));
  const Picture all = course(study, book);
  if (!all.dots.empty()) {
    const Drawing drawing(study, book.best(), all.dots);
    html += "<div class=\"pictures\">\n" + drawing.html(all);
    if (!curves.empty()) html += drawing.html(courses(study, curves));
    const std::vector<std::string> names = short_names(study.space);
    for (std::size_t i = 0; i < study.space.size(); ++i) {
      if (levels(study.space[i]) == 1) continue;
      html += drawing.html(slice(study, i, names[i], all.dots, book));
    }
    html += "</div>\n";
  }
  return html + "<pre>" + escaped(report_text(study, book)) + "</pre>\n</body>\n</html>\n";
}

}  // namespace troupe::study
