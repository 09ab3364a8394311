#include "model/physics/figures_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace troupe::model {
namespace {

constexpr std::array kRanked{
    "merit", "response",      "response_width",     "longitudinal", "transverse_x",
    "hits",  "depth_spread",  "layer_correlations", "copies",       "frechet",
    "auc",   "judge_frechet", "judge_confidence",   "judge_classes"};

std::string with_unit(const std::string& number, const Figure& figure) {
  return figure.unit.empty() ? number : fmt::format("{} {}", number, figure.unit);
}

// Lines of columns, the first to the left and the others to the right.
std::string aligned(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : lines) {
    std::string out = fmt::format("{:<{}}", line[0], widths[0]);
    for (std::size_t i = 1; i < line.size(); ++i)
      out += fmt::format("  {:>{}}", line[i], widths[i]);
    out.erase(out.find_last_not_of(' ') + 1);
    text += fmt::format("{}\n", out);
  }
  return text;
}

std::string mark(const Figure& figure) { return std::string(figure.beyond_floor() ? 1 : 0, '!'); }

}  // namespace

std::string value_text(const Figure& figure) {
  if (!figure.value) return "-";
  // Two digits of the uncertainty.
  const double scale = figure.uncertainty > 0.0 ? figure.uncertainty : std::abs(*figure.value);
  const double digits = scale > 0.0 ? 1.0 - std::floor(std::log10(scale)) : 2.0;
  if (digits > 6.0) return with_unit(fmt::format("{:.2g}", *figure.value), figure);
  return with_unit(
      fmt::format("{:.{}f}", *figure.value, std::clamp(static_cast<int>(digits), 0, 6)), figure);
}

std::string floor_text(const Figure& figure) {
  if (!figure.value) return "-";
  const std::string floor = with_unit(fmt::format("{:.2g}", figure.floor), figure);
  return figure.ideal == 0.0 ? floor : fmt::format("{:.4g} +- {}", figure.ideal, floor);
}

std::string verdict_text(std::span<const Fault> faults) {
  std::string text = fmt::format("{}\n", verdict_line(faults));
  for (const Fault& fault : faults) text += fmt::format("  {}\n", fault.text);
  return text;
}

std::string figures_text(std::span<const Figure> figures) {
  std::vector<std::vector<std::string>> lines{
      {"figure", "value", "+-", "data against data", "", ""}};
  std::vector<std::vector<std::string>> distances;
  for (const Figure& figure : figures) {
    if (!figure.value) continue;
    const std::size_t point = figure.name.rfind('.');
    if (point == std::string::npos) {
      lines.push_back({figure.title, value_text(figure), fmt::format("{:.2g}", figure.uncertainty),
                       floor_text(figure), mark(figure), ""});
      continue;
    }
    if (distances.empty()) distances.push_back({"distributions"});
    const std::string observable = figure.name.substr(0, point);
    if (distances.back()[0] != observable) distances.push_back({observable});
    if (distances.size() == 2) distances[0].push_back(figure.name.substr(point + 1));
    distances.back().push_back(fmt::format("{:.2g} ({:.2g}){}", *figure.value, figure.floor,
                                           figure.beyond_floor() ? "!" : " "));
  }
  std::string text = aligned(lines);
  if (!distances.empty()) text += fmt::format("\n{}", aligned(distances));
  return text +
         "\nData against data: what two equal samples of these sizes have, on average (in brackets "
         "below).\n! beyond what 95 of 100 such pairs have.\n";
}

// The figures are those of the first; where a classifier has judged, nobody looked for faults.
std::string ranking_text(std::span<const RankedSample> samples) {
  std::vector<std::vector<std::string>> lines{{"checkpoint"}};
  const auto& figures = samples.front().figures;
  const bool has_faults = find_figure(figures, "merit") != nullptr;
  std::vector<const char*> ranked;
  std::ranges::copy_if(kRanked, std::back_inserter(ranked),
                       [&](const char* name) { return find_figure(figures, name) != nullptr; });
  for (const char* name : ranked) lines[0].emplace_back(name);
  if (has_faults) lines[0].emplace_back("faults");
  for (const RankedSample& sample : samples) {
    auto& line = lines.emplace_back(std::vector{sample.name});
    for (const char* name : ranked) {
      const Figure* figure = find_figure(sample.figures, name);
      line.push_back(figure == nullptr ? "-" : value_text(*figure));
    }
    if (has_faults) line.push_back(fmt::format("{}", sample.faults.size()));
  }
  return aligned(lines);
}

}  // namespace troupe::model
