#include "model/physics/validation_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "model/physics/validation_plots.h"
#include "runtime/base/error.h"

namespace troupe::model {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ink: #1b1b1f; --paper: #ffffff; --line: #8a8a92;
  --soft: #f1f1f4; --data: #2f5f9e; --generated: #b3401f; --bad: #a3241b; --good: #1d6b3a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececf1; --paper: #17171b; --line: #77777f; --soft: #24242a; --data: #8db4ea;
    --generated: #f09a7c; --bad: #ff9d93; --good: #85d6a2; }
}
@media print {
  :root { --ink: #000; --paper: #fff; --line: #777; --soft: #fff; --data: #2f5f9e;
    --generated: #b3401f; --bad: #a3241b; --good: #1d6b3a; }
  main { max-width: none !important; }
}
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.45 system-ui, sans-serif; }
main { max-width: 1400px; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.verdict { font-size: 1.15rem; font-weight: 600; }
.bad { color: var(--bad); } .good { color: var(--good); }
.plots { display: grid; gap: 1.2rem; grid-template-columns: repeat(auto-fill, minmax(320px, 1fr)); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; }
th, td { text-align: left; padding: 0.2rem 0.7rem 0.2rem 0; border-bottom: 1px solid var(--line); }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr { break-inside: avoid; }
.key-data { color: var(--data); font-weight: 600; }
.key-generated { color: var(--generated); font-weight: 600; }
)";

std::string number_cell(const std::string& text) {
  return fmt::format("<td class=\"number\">{}</td>", escaped(text));
}

std::string heading_row(std::initializer_list<const char*> names) {
  std::string row;
  for (const char* name : names) row += fmt::format("<th scope=\"col\">{}</th>", name);
  return fmt::format("<thead><tr>{}</tr></thead>", row);
}

// `name`: of the region, which scrolls where it is wider than the screen.
std::string table(const char* name, const std::string& heading, const std::string& rows) {
  return fmt::format(
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">"
      "<table>{}<tbody>{}</tbody></table></div>\n",
      name, heading, rows);
}

std::string top(const ValidationReport& report) {
  const RankedSample& best = report.judged.front();
  std::string html =
      fmt::format("<h1>{} against {}</h1>\n<p class=\"verdict {}\">{}</p>\n", escaped(best.name),
                  escaped(report.against), best.faults.empty() ? "good" : "bad",
                  escaped(verdict_line(best.faults)));
  if (!best.faults.empty()) {
    html += "<ul>";
    for (const Fault& fault : best.faults) html += fmt::format("<li>{}</li>", escaped(fault.text));
    html += "</ul>\n";
  }
  for (const Fault& remark : report.remarks) {
    html += fmt::format("<p>{}</p>\n", escaped(remark.text));
  }
  return html + fmt::format(
                    "<p>{} generated showers, {} of the data. In the plots the "
                    "<span class=\"key-data\">data</span> are steps with a band of their errors, "
                    "the <span class=\"key-generated\">generated showers</span> points with error "
                    "bars, and below is generated / data.</p>\n",
                    report.generated.showers().size(), report.data.showers().size());
}

std::string ranking(std::span<const RankedSample> judged) {
  if (judged.size() < 2) return "";
  std::string rows;
  for (const RankedSample& sample : judged) {
    rows += fmt::format("<tr><th scope=\"row\">{}</th>", escaped(sample.name));
    for (const char* name : {"merit", "response", "response_width", "longitudinal", "hits",
                             "layer_correlations", "frechet", "auc"}) {
      const Figure* figure = find_figure(sample.figures, name);
      CHECK(figure != nullptr, "no such figure");
      rows += number_cell(value_text(*figure));
    }
    rows += number_cell(fmt::format("{}", sample.faults.size())) + "</tr>\n";
  }
  return "<h2>Checkpoints</h2>\n" +
         table("All checkpoints",
               heading_row({"checkpoint", "merit", "response", "width", "longitudinal", "hits",
                            "layers", "Frechet", "AUC", "faults"}),
               rows);
}

std::string figure_rows(std::span<const Figure> figures, bool distributions) {
  std::string rows;
  for (const Figure& figure : figures) {
    const bool of_distribution = figure.name.find('.') != std::string::npos;
    if (!figure.value || of_distribution != distributions) continue;
    rows += fmt::format("<tr><th scope=\"row\">{}</th>", escaped(figure.title)) +
            number_cell(value_text(figure)) +
            number_cell(fmt::format("{:.2g}", figure.uncertainty)) +
            number_cell(floor_text(figure)) +
            fmt::format("<td class=\"{}\">{}</td><td>{}</td></tr>\n",
                        figure.beyond_floor() ? "bad" : "good",
                        figure.beyond_floor() ? "beyond" : "within", escaped(figure.source));
  }
  return rows;
}

std::string figures(std::span<const Figure> list) {
  const std::string heading =
      heading_row({"figure", "value", "uncertainty", "data against data", "floor", "formula"});
  return "<h2>Figures</h2>\n<p>Data against data: what two samples drawn from the data themselves "
         "have on average. Beyond: further from the ideal than 95 of 100 such samples.</p>\n" +
         table("All figures", heading, figure_rows(list, false)) + "<h2>Distributions</h2>\n" +
         table("All distributions", heading, figure_rows(list, true));
}

std::string section(const char* title, const std::string& plots) {
  return fmt::format("<h2>{}</h2>\n<div class=\"plots\">\n{}</div>\n", title, plots);
}

std::string projections(const ShowerSample& data, const ShowerSample& generated) {
  std::string maps;
  const auto add = [&](std::size_t axis, const AngleBin* angles) {
    for (const HeatMap& map : projection_maps(data, generated, axis, angles)) maps += map_html(map);
  };
  for (const std::size_t axis : {1U, 0U, 2U}) add(axis, nullptr);
  for (const AngleBin& bin : data.options().angle_bins) {
    for (const std::size_t axis : {1U, 0U}) add(axis, &bin);
  }
  return maps;
}

// How far the two distributions are apart, beside what the data have against themselves.
std::string distances(const ShowerObservable& observable, std::span<const Figure> figures) {
  std::string text;
  for (const auto& [distance, words] : {std::pair("chi_square", "chi-square / degrees of freedom"),
                                        std::pair("kolmogorov", "KS")}) {
    const Figure* figure = find_figure(figures, fmt::format("{}.{}", observable.name, distance));
    if (figure == nullptr || !figure->value) continue;
    text += fmt::format("{}{} {:.3g} (data against data {:.2g})", text.empty() ? "" : ", ", words,
                        *figure->value, figure->floor);
  }
  return text;
}

std::string plots(const ValidationReport& report) {
  const ShowerSample &data = report.data, &generated = report.generated;
  std::string profiles, energies, angles, cells, observables, maps, outputs;
  energies = plot_html(response_plot(data, generated, false)) +
             plot_html(response_plot(data, generated, true));
  for (const std::size_t axis : {2U, 0U, 1U}) {
    for (const bool log : {false, true})
      profiles += plot_html(profile_plot(data, generated, axis, log));
    for (const EnergyBin& bin : data.options().energy_bins)
      energies += plot_html(profile_plot(data, generated, axis, bin));
    for (const AngleBin& bin : data.options().angle_bins)
      angles += plot_html(profile_plot(data, generated, axis, bin));
  }
  cells = plot_html(spectrum_plot(data, generated)) + plot_html(occupancy_plot(data, generated));
  for (const ShowerObservable& observable : shower_observables()) {
    if (!observable.is_known(data.options().angle)) continue;
    ComparisonPlot plot = observable_plot(data, generated, observable);
    plot.note = distances(observable, report.judged.front().figures);
    observables += plot_html(plot);
  }
  for (const HeatMap& map : correlation_maps(data, generated)) maps += map_html(map);
  for (const DiscriminatorOutput& output : report.outputs)
    outputs += plot_html(output_plot(output));
  return section("Profiles", profiles) + section("By energy", energies) +
         (angles.empty() ? "" : section("By angle", angles)) + section("Cells", cells) +
         section("Observables", observables) +
         section("Mean of the first showers", projections(data, generated)) +
         section("Correlations", maps) +
         (outputs.empty() ? "" : section("What the discriminator says", outputs));
}

}  // namespace

std::string validation_html(const ValidationReport& report) {
  CHECK(!report.judged.empty(), "a report is of something");
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}: showers against data</title>\n<style>{}{}</style>\n</head>\n<body>\n<main>\n{}"
      "</main>\n</body>\n</html>\n",
      escaped(report.judged.front().name), kStyle, kPlotStyle,
      top(report) + ranking(report.judged) + plots(report) +
          figures(report.judged.front().figures));
}

}  // namespace troupe::model
