#include "study/study_page.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/physics/svg_plot.h"
#include "study/picture.h"
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
pre { overflow-x: auto; border: 1px solid var(--line); padding: 0.5rem; }
)";

// Figures in the order in which the trials were proposed.
Picture course(const Study& study, const TrialBook& book) {
  Picture picture{study.objective.figure() + " by trial, and the best so far", {}, {}, true};
  const double last = std::max<double>(1.0, static_cast<double>(book.trials().size()) - 1.0);
  for (std::uint32_t i = 0; i < book.trials().size(); ++i) {
    const auto figure = book.figure(book.trials()[i]);
    if (figure) picture.dots.push_back({i, i / last, figure->mean, figure->deviation});
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

constexpr std::size_t kLongestTick = 12;

// The values of a choice, or their numbers from 1 where one is too long for a picture.
std::vector<std::string> short_values(const Dimension& dimension) {
  std::vector<std::string> texts = *dimension.choice;
  const bool are_short = std::ranges::all_of(
      texts, [](const std::string& text) { return text.size() <= kLongestTick; });
  if (are_short) return texts;
  for (std::size_t i = 0; i < texts.size(); ++i) texts[i] = std::to_string(i + 1);
  return texts;
}

void add_ticks(const Dimension& dimension, const std::function<double(double)>& place,
               Picture& picture) {
  if (!dimension.choice) {
    for (const double share : {0.0, 1.0}) {
      const double value = value_at(dimension, share);
      picture.ticks.emplace_back(share_of(dimension, value), text_of(dimension, value));
    }
    return;
  }
  const std::vector<std::string> texts = short_values(dimension);
  if (texts != *dimension.choice) picture.key = *dimension.choice;
  for (std::size_t i = 0; i < texts.size() && i < 10; ++i) {
    picture.ticks.emplace_back(place(static_cast<double>(i)), texts[i]);
  }
}

// What a point has in all fields but one, in words: "fp32, learning_rate 2".
std::string rest_of(const Study& study, std::size_t without, const Point& point,
                    const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < study.space.size(); ++i) {
    const Dimension& dimension = study.space[i];
    if (i == without || levels(dimension) == 1 || point[i] == kAbsent) continue;
    const std::string whole = text_of(dimension, point[i]);
    if (!dimension.choice) {
      parts.push_back(names[i] + " " + whole);
      continue;
    }
    const std::string text = short_values(dimension)[static_cast<std::size_t>(point[i])];
    parts.push_back(text == whole && !text.empty() &&
                            !std::isdigit(static_cast<unsigned char>(text.front()))
                        ? text
                        : names[i] + " " + text);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// A grid has a line for each setting of the other fields, if they are few.
void add_groups(const Study& study, std::size_t number, const std::vector<std::string>& names,
                const TrialBook& book, Picture& picture) {
  if (study.method.kind != MethodKind::kGrid) return;
  std::vector<Group> groups;
  for (const Dot& dot : picture.dots) {
    const std::string name = rest_of(study, number, book.trials()[dot.trial].point, names);
    auto group = std::ranges::find(groups, name, &Group::name);
    if (group == groups.end()) group = groups.insert(group, Group{name, {}});
    group->dots.push_back(dot);
  }
  if (groups.size() < 2 || groups.size() > kMostGroups) return;
  for (Group& group : groups) std::ranges::sort(group.dots, {}, &Dot::x);
  picture.groups = std::move(groups);
  picture.dots.clear();
}

// The figure over one field.
Picture slice(const Study& study, std::size_t number, const std::vector<std::string>& names,
              const std::vector<Dot>& all, const TrialBook& book) {
  const Dimension& dimension = study.space[number];
  Picture picture{study.objective.figure() + " by " + names[number], {}, {}, false};
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
  add_ticks(dimension, place, picture);
  add_groups(study, number, names, book, picture);
  return picture;
}

}  // namespace

std::string study_html(const Study& study, const TrialBook& book, const std::vector<Curve>& curves,
                       std::uint32_t renewed_s) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n{}<title>{}: a study</title>\n"
      "<style>{}{}</style>\n</head>\n<body>\n<h1>{}</h1>\n",
      renewed_s == 0 ? ""
                     : fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", renewed_s),
      escaped(study.name), kStyle, kPictureStyle, escaped(study.name));
  const Picture all = course(study, book);
  if (!all.dots.empty()) {
    const Drawing drawing(study, book.best(), all.dots);
    html += "<div class=\"pictures\">\n" + drawing.html(all);
    if (!curves.empty()) html += drawing.html(courses(study, curves));
    const std::vector<std::string> names = short_names(study.space);
    for (std::size_t i = 0; i < study.space.size(); ++i) {
      if (levels(study.space[i]) == 1) continue;
      html += drawing.html(slice(study, i, names, all.dots, book));
    }
    html += "</div>\n";
  }
  return html + "<pre>" + escaped(report_text(study, book)) + "</pre>\n</body>\n</html>\n";
}

}  // namespace troupe::study
